#pragma once

#include <fstream>
#include <string>
#include <string_view>

namespace tutti::train {

/// What one step took on rank 0.
struct StepTimes {
  std::size_t step = 0;  ///< from 1
  double seconds = 0;
  double compute = 0;              ///< until the last gradient was there
  double exposed = 0;              ///< of waiting for gradients when there was nothing left to compute
  std::size_t gradient_bytes = 0;  ///< of fp32, before any codec
  std::size_t sent_bytes = 0;      ///< to other nodes, payload, since the step before
};

/// The lines that rank 0 writes beside the checkpoint, one JSON object each: metrics.jsonl by epoch,
/// journal.jsonl by decision, steps.jsonl by step if asked for. Elsewhere it is not opened, and does nothing.
class RunFiles {
 public:
  /// Throws SystemError that names the file. `goes_on`: adds to what is there.
  void open(const std::string& folder, bool goes_on, bool steps);

  void metrics(std::string_view line);
  /// May be called where an error would be known to rank 0 only: flush() throws it.
  void journal(std::string_view line);
  void step(const StepTimes& times);
  /// Throws SystemError if anything was not written.
  void flush();

 private:
  struct File {
    std::string path;
    std::ofstream stream;
    bool append = false;
  };

  static void open(File& file);

  File metrics_;
  File journal_;  ///< made with its first line
  File steps_;
};

}  // namespace tutti::train
