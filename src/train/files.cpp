#include "train/files.hpp"

#include <cerrno>
#include <filesystem>

#include "base/error.hpp"

namespace tutti::train {

void RunFiles::open(File& file) {
  errno = 0;
  file.stream.open(file.path, file.append ? std::ios::app : std::ios::trunc);
  if (!file.stream) base::fail<SystemError>("cannot write '{}': {}", file.path, base::errno_text(errno));
}

void RunFiles::open(const std::string& folder, bool goes_on, bool steps) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) base::fail<SystemError>("cannot make the output folder '{}': {}", folder, error.message());
  metrics_ = {.path = folder + "/metrics.jsonl", .append = goes_on};
  journal_ = {.path = folder + "/journal.jsonl", .append = goes_on};
  steps_ = {.path = folder + "/steps.jsonl", .append = goes_on};
  open(metrics_);
  if (steps) open(steps_);
  // Of an earlier run, it would be taken for this one's.
  if (!goes_on) std::filesystem::remove(journal_.path, error);
  if (!goes_on && !steps) std::filesystem::remove(steps_.path, error);
}

void RunFiles::metrics(std::string_view line) {
  if (metrics_.stream.is_open()) metrics_.stream << line << '\n';
}

void RunFiles::journal(std::string_view line) {
  if (!metrics_.stream.is_open()) return;
  if (!journal_.stream.is_open())
    journal_.stream.open(journal_.path, journal_.append ? std::ios::app : std::ios::trunc);
  journal_.stream << line << '\n';
}

void RunFiles::step(const StepTimes& times) {
  if (!steps_.stream.is_open()) return;
  steps_.stream << fmt::format(
      R"({{"step":{},"ms":{:.4f},"compute_ms":{:.4f},"exposed_ms":{:.4f},"gradient_bytes":{},"sent_bytes":{}}})"
      "\n",
      times.step, 1e3 * times.seconds, 1e3 * times.compute, 1e3 * times.exposed, times.gradient_bytes,
      times.sent_bytes);
}

void RunFiles::flush() {
  for (File* file : {&metrics_, &journal_, &steps_}) {
    // A stream that failed to open is not open, but has failed.
    if (!file->stream.is_open() && !file->stream.fail()) continue;
    errno = 0;
    file->stream.flush();
    if (!file->stream) base::fail<SystemError>("cannot write '{}': {}", file->path, base::errno_text(errno));
  }
}

}  // namespace tutti::train
