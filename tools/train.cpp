#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/options.hpp"
#include "compress/codec.hpp"
#include "tools/command.hpp"
#include "tools/parse.hpp"
#include "tools/stop_signal.hpp"
#include "train/trainer.hpp"
#include "tutti/session.hpp"

namespace tutti::tools {
namespace {

std::string codec_help() {
  std::string names;
  for (const compress::Entry& entry : compress::codecs())
    names += fmt::format("{}{}{}", names.empty() ? "" : "; ", entry.name,
                         entry.options.empty() ? "" : fmt::format(" ({})", entry.options));
  return "Gradients are encoded for their way, such as int8:block=128, or auto:error=cast: by what is "
         "measured to "
         "be fastest of all that lose no more than exact | cast (default) | bounded | feedback; known are " +
         names;
}

/// Options as the command line has them; names become types when training starts, so that errors are agreed
/// on.
struct Text {
  std::string model = "128";
  std::string activation = "relu";
  std::string loss = "cross_entropy";
  std::string schedule = "cosine";
  std::string link;
};

/// Open MPI gives its processes a terminal of its own making, so under a launcher the launcher's standard
/// output counts, where it can be seen.
bool on_terminal() {
  if (isatty(STDOUT_FILENO) == 0) return false;
  if (!base::launch_hint().size) return true;
  std::error_code error;
  const auto target = std::filesystem::read_symlink(fmt::format("/proc/{}/fd/1", getppid()), error).string();
  return target.starts_with("/dev/pts/") || target.starts_with("/dev/tty");
}

/// A progress bar on a terminal, plain lines elsewhere.
class Printer final : public train::Reporter {
 public:
  /// A launcher that was told to stop may read no more: nothing is printed from then on but the summary.
  explicit Printer(const StopSignal& stop) : stop_(stop), bar_(on_terminal()) {}

  void started(const std::string& description) override { line(description); }

  void step(std::size_t done, std::size_t all) override {
    constexpr std::size_t width = 40;
    if (!bar_ || stop_.requested() || (done % 10 != 0 && done != all)) return;
    const std::size_t full = width * done / all;
    fmt::print("\r[{:#<{}}{:.<{}}] {}/{}", "", full, "", width - full, done, all);
    std::fflush(stdout);
    drawn_ = true;
  }

  void epoch(const train::EpochMetrics& m, std::size_t epochs, bool classification) override {
    if (stop_.requested()) return;
    const std::string test = classification ? fmt::format("test accuracy {:6.2f} %", 100 * m.test_accuracy)
                                            : fmt::format("test loss {:.4f}", m.test_loss);
    line(fmt::format("epoch {:>3}/{}  loss {:.4f}  {}  step {:.3f} ms  communication {:.0f} %", m.epoch,
                     epochs, m.train_loss, test, 1e3 * m.step_seconds, 100 * m.communication));
  }

  void finished(const train::Summary& summary) override { line(table_of(summary)); }

 private:
  void line(const std::string& text) {
    if (drawn_) fmt::print("\r{:60}\r", "");
    drawn_ = false;
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }

  const StopSignal& stop_;
  bool bar_;
  bool drawn_ = false;
};

/// CLI11 turns -1 into a huge number without a word. This comes first.
CLI::Validator count_up_to(double most) {
  return CLI::Validator(
      [most](std::string& text) -> std::string {
        double value = -1;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (error == std::errc() && end == text.data() + text.size() && value >= 0 && value <= most)
          return {};
        return fmt::format("expected a whole number from 0 to {:.0f}, not '{}'", most, text);
      },
      "");
}

constexpr double many = 1e12;

std::vector<std::size_t> widths_from(std::string_view text) {
  std::vector<std::size_t> widths;
  const std::string_view whole = text;
  while (!text.empty() && text != "none") {
    const auto end = text.find(',');
    const std::string_view part = text.substr(0, end);
    std::size_t width = 0;
    const auto [stop, error] = std::from_chars(part.data(), part.data() + part.size(), width);
    base::require(error == std::errc() && stop == part.data() + part.size() && width > 0 && width <= 1 << 20,
                  "--model '{}': expected widths of the hidden layers such as 128 or 512,512, none, or lenet",
                  whole);
    widths.push_back(width);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return widths;
}

int run(train::TrainOptions options, const Text& text) {
  options.lenet = text.model == "lenet";
  if (!options.lenet) options.hidden = widths_from(text.model);
  options.activation = model::activation_from(text.activation);
  options.loss = model::loss_from(text.loss);
  options.rate_kind = model::rate_kind_from(text.schedule);
  options.data.regression = options.loss == model::Loss::squared && options.data.source != "digits";
  StopSignal stop;  // before MPI makes threads: they inherit that the signal is held back
  if (!text.link.empty()) base::parse_link(text.link, "--link");
  Session session({.link = text.link});
  Printer printer(stop);
  const base::SteadyClock clock;
  try {
    train::train(session.world(), options, {clock, printer, [&stop] { return stop.requested(); }});
  } catch (const base::AgreedError&) {
    throw;
  } catch (const std::exception& error) {
    // The others know nothing of this and may be waiting: end the job.
    fmt::print(stderr, "tutti: error on rank {} of {}: {}\n", session.world().rank(), session.world().size(),
               error.what());
    session.abort(1);
  }
  return 0;
}

void add_data_options(CLI::App& app, train::TrainOptions& o) {
  const auto group = "Data";
  app.add_option("--data", o.data.source,
                 "digits (built in), fashion-mnist (where it is installed), a folder with the IDX files of "
                 "MNIST, or a CSV file; .gz too")
      ->envname("TUTTI_DATA")
      ->capture_default_str()
      ->group(group);
  app.add_option("--split-seed", o.data.split_seed,
                 "Seed of the split into training and test part, where the data have none")
      ->check(count_up_to(1.8e19))
      ->envname("TUTTI_SPLIT_SEED")
      ->capture_default_str()
      ->group(group);
  app.add_option("--test-part", o.data.test_part, "CSV: part of the rows held out for testing")
      ->envname("TUTTI_TEST_PART")
      ->capture_default_str()
      ->group(group);
  app.add_option("--label-column", o.data.label_column, "CSV: first, last or a 0-based number")
      ->envname("TUTTI_LABEL_COLUMN")
      ->capture_default_str()
      ->group(group);
  app.add_option("--standardize", o.data.standardize, "CSV: features to mean 0 and variance 1")
      ->envname("TUTTI_STANDARDIZE")
      ->capture_default_str()
      ->group(group);
}

void add_model_options(CLI::App& app, train::TrainOptions& o, Text& text) {
  const auto group = "Model and optimizer";
  app.add_option("--model", text.model,
                 "Widths of the hidden layers, such as 128 or 512,512; none: softmax regression; lenet: two "
                 "convolutions and three dense layers, for images")
      ->envname("TUTTI_MODEL")
      ->capture_default_str()
      ->group(group);
  app.add_option("--activation", text.activation, "relu | tanh")
      ->envname("TUTTI_ACTIVATION")
      ->check(CLI::IsMember({"relu", "tanh"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--loss", text.loss, "cross_entropy | squared (CSV: real targets)")
      ->envname("TUTTI_LOSS")
      ->check(CLI::IsMember({"cross_entropy", "squared"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--optimizer", o.optimizer.name, "sgd | adam")
      ->envname("TUTTI_OPTIMIZER")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--momentum", o.optimizer.momentum, "Of sgd")
      ->envname("TUTTI_MOMENTUM")
      ->capture_default_str()
      ->group(group);
  app.add_option("--beta1", o.optimizer.beta1, "Of adam")
      ->envname("TUTTI_BETA1")
      ->capture_default_str()
      ->group(group);
  app.add_option("--beta2", o.optimizer.beta2, "Of adam")
      ->envname("TUTTI_BETA2")
      ->capture_default_str()
      ->group(group);
  app.add_option("--weight-decay", o.optimizer.weight_decay, "L2 penalty")
      ->envname("TUTTI_WEIGHT_DECAY")
      ->capture_default_str()
      ->group(group);
}

void add_run_options(CLI::App& app, train::TrainOptions& o, Text& text) {
  const auto group = "Training";
  app.add_option("--epochs", o.epochs, "Passes over the training set")
      ->check(count_up_to(many))
      ->envname("TUTTI_EPOCHS")
      ->capture_default_str()
      ->group(group);
  app.add_option("--steps", o.steps, "Steps instead of epochs; 0: by epochs")
      ->check(count_up_to(many))
      ->envname("TUTTI_STEPS")
      ->capture_default_str()
      ->group(group);
  app.add_option("--batch", o.batch, "Global batch: samples of a step, over all ranks")
      ->check(count_up_to(many))
      ->envname("TUTTI_BATCH")
      ->capture_default_str()
      ->group(group);
  app.add_option("--lr", o.rate, "Learning rate")->envname("TUTTI_LR")->capture_default_str()->group(group);
  app.add_option("--schedule", text.schedule, "constant | step | cosine")
      ->envname("TUTTI_SCHEDULE")
      ->check(CLI::IsMember({"constant", "step", "cosine"}))
      ->capture_default_str()
      ->group(group);
  app.add_option("--warmup", o.warmup_steps, "Steps over which the learning rate rises from 0")
      ->check(count_up_to(many))
      ->envname("TUTTI_WARMUP")
      ->capture_default_str()
      ->group(group);
  app.add_option("--seed", o.seed, "Seed of initial weights and of the order of samples")
      ->check(count_up_to(1.8e19))
      ->envname("TUTTI_SEED")
      ->capture_default_str()
      ->group(group);
  app.add_option(
         "--bucket", o.bucket_bytes,
         "Gradients travel in buckets of about this size, each while the backward pass goes on, such as 4M")
      ->transform(CLI::AsSizeValue(false))
      ->envname("TUTTI_BUCKET")
      ->capture_default_str()
      ->group(group);
  app.add_option("--first-bucket", o.first_bucket_bytes, "The first bucket of a step is of about this size")
      ->transform(CLI::AsSizeValue(false))
      ->envname("TUTTI_FIRST_BUCKET")
      ->capture_default_str()
      ->group(group);
  app.add_option("--codec", o.codec, codec_help())->envname("TUTTI_CODEC")->group(group);
  app.add_option("--link", text.link, link_help)->envname("TUTTI_LINK")->group(group);
  app.add_option("--algorithm", o.algorithm, "Allreduce algorithm (see tutti verify); chosen if not given")
      ->envname("TUTTI_ALGORITHM")
      ->group(group);
  app.add_option("--order", o.order,
                 "Order of additions: canonical (the same bits whatever the algorithm) or any")
      ->envname("TUTTI_ORDER")
      ->check(CLI::IsMember({"canonical", "any"}))
      ->group(group);
}

void add_output_options(CLI::App& app, train::TrainOptions& o) {
  const auto group = "Output";
  app.add_option(
         "--output", o.output,
         "Folder of checkpoint.tutti, metrics.jsonl and, of --codec auto, journal.jsonl; an empty string "
         "writes nothing")
      ->envname("TUTTI_OUTPUT")
      ->capture_default_str()
      ->group(group);
  app.add_option("--checkpoint-every", o.checkpoint_every, "Steps between checkpoints; 0: at the end only")
      ->check(count_up_to(many))
      ->envname("TUTTI_CHECKPOINT_EVERY")
      ->capture_default_str()
      ->group(group);
  app.add_option("--resume", o.resume, "Go on from this checkpoint, to the same bits as without a break")
      ->envname("TUTTI_RESUME")
      ->group(group);
  app.add_option("--log-every", o.log_every, "Epochs between lines of the log")
      ->check(count_up_to(many))
      ->envname("TUTTI_LOG_EVERY")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--step-log", o.step_log, "Write steps.jsonl, too: what each step took on rank 0")
      ->envname("TUTTI_STEP_LOG")
      ->group(group);
  app.add_option("--verify-replicas", o.verify_replicas,
                 "Steps between comparisons of all replicas; 0: at the end only")
      ->check(count_up_to(many))
      ->envname("TUTTI_VERIFY_REPLICAS")
      ->capture_default_str()
      ->group(group);
}

}  // namespace

std::function<int()> attach_train(CLI::App& app) {
  const auto options = std::make_shared<train::TrainOptions>();
  const auto text = std::make_shared<Text>();
  add_data_options(app, *options);
  add_model_options(app, *options, *text);
  add_run_options(app, *options, *text);
  add_output_options(app, *options);
  app.footer(
      "Options may also stand in a file (tutti --config FILE train; lines such as train.epochs=10) or in the "
      "variables named\n"
      "above; the command line wins. SIGTERM or SIGUSR1 to any rank stops all after the same step, with a "
      "checkpoint;\n"
      "under mpirun send SIGUSR1, as launchers kill soon after a SIGTERM (scripts/run-mpi does so).\n"
      "Built-in data: UCI Optical Recognition of Handwritten Digits, Alpaydin and Kaynak, CC BY 4.0.");
  return [options, text] { return run(*options, *text); };
}

}  // namespace tutti::tools
