#include "train/trainer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/file.hpp"
#include "data/order.hpp"
#include "engine/choice.hpp"
#include "engine/communicator_state.hpp"
#include "gradient/automatic.hpp"
#include "train/agree.hpp"
#include "train/checkpoint.hpp"
#include "train/files.hpp"
#include "tutti/reducer.hpp"

namespace tutti::train {
namespace {

/// What every step must agree on besides gradients; travels with them.
constexpr std::size_t most_steps = 1'000'000'000'000;

enum Tail : std::size_t { tail_loss, tail_correct, tail_stop, tail_size };

/// Nothing to be safe against but an accident, and fast.
std::uint64_t hash_of(std::span<const float> values) {
  std::uint64_t hash = base::mix(values.size());
  for (const float value : values)
    hash = std::rotl(hash, 7) * 0x9e3779b97f4a7c15ULL + std::bit_cast<std::uint32_t>(value);
  return base::mix(hash);
}

/// Collective: ranks that train by different options would wait for each other for ever, or worse, not.
void require_same_options(Communicator& world, const TrainOptions& options) {
  std::string lines;
  for (const auto& [flag, value] : described(options)) lines += fmt::format("{} '{}'\n", flag, value);
  const std::string reference = broadcast_text(world, lines);
  std::string complaint;
  if (reference != lines) {
    const auto [mine, theirs] = std::ranges::mismatch(lines, reference);
    const auto line_at = [](const std::string& text, std::size_t at) {
      const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      return text.substr(begin, text.find('\n', begin) - begin);
    };
    complaint =
        fmt::format("the options differ between ranks: {} here, {} on rank 0; give every rank the same",
                    line_at(lines, static_cast<std::size_t>(mine - lines.begin())),
                    line_at(reference, static_cast<std::size_t>(theirs - reference.begin())));
  }
  agree(world, complaint);
}

class Training {
 public:
  Training(Communicator& world, const TrainOptions& options, const Surroundings& surroundings)
      : world_(world), options_(options), surroundings_(surroundings) {}

  Summary run() {
    require_same_options(world_, options_);
    agreed(world_, [&] { set_up(); });
    open_output();
    agreed(world_, [&] { gradient::automatic_error(options_.codec); });
    make_reducer();
    if (!options_.resume.empty()) resume();
    if (world_.rank() == 0) surroundings_.reporter.started(description());
    const double begin = now();
    while (step_ < total_steps_ && !stopped_) {
      take_step();
      const bool last = step_ == total_steps_ || stopped_;
      if (options_.verify_replicas > 0 && step_ % options_.verify_replicas == 0)
        verify_replicas(world_, parameters_);
      if (!last && options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0)
        write_checkpoint();
      if (last || step_ % order_->steps_per_epoch() == 0) end_epoch(last);
    }
    return finish(now() - begin);
  }

 private:
  double now() const { return surroundings_.clock.now().count(); }

  bool classification() const { return split_.train.classes > 0; }

  void set_up() {
    split_ = data::load(options_.data);
    const data::Dataset& train = split_.train;
    order_ = std::make_unique<data::SampleOrder>(train.samples(), options_.batch, options_.seed);
    base::require(
        std::cmp_less_equal(world_.size(), train.samples()),
        "{} ranks for {} training samples: there must be at least one sample a rank; start fewer ranks",
        world_.size(), train.samples());
    base::require(classification() || options_.loss == model::Loss::squared,
                  "real targets need --loss squared, not {}", name_of(options_.loss));
    base::require(options_.rate > 0 && std::isfinite(options_.rate), "learning rate {}: expected more than 0",
                  options_.rate);
    base::require(options_.order.empty() || options_.order == "canonical" || options_.order == "any",
                  "order '{}': expected canonical or any", options_.order);
    network_ = make_network();
    parameters_.resize(network_->parameter_count());
    network_->initialize(parameters_, options_.seed);
    optimizer_ = model::make_optimizer(options_.optimizer, parameters_.size());
    base::require(options_.steps > 0 || options_.epochs <= most_steps / order_->steps_per_epoch(),
                  "{} epochs of {} steps: expected at most {} steps", options_.epochs,
                  order_->steps_per_epoch(), most_steps);
    total_steps_ = options_.steps > 0 ? options_.steps : options_.epochs * order_->steps_per_epoch();
    base::require(total_steps_ > 0, "0 steps to train: give --epochs or --steps");
    rate_ = {.kind = options_.rate_kind,
             .base = options_.rate,
             .warmup_steps = options_.warmup_steps,
             .total_steps = total_steps_};
    if (!options_.algorithm.empty())
      engine::parse_choice(schedule::Collective::allreduce, options_.algorithm);
    call_ = {.name = "gradient", .algorithm = options_.algorithm};
    if (!options_.order.empty()) call_.order = options_.order == "any" ? Order::any : Order::canonical;
  }

  std::unique_ptr<model::Network<float>> make_network() const {
    const data::Dataset& train = split_.train;
    const std::size_t outputs = std::max<std::size_t>(1, train.classes);
    if (!options_.lenet)
      return std::make_unique<model::Network<float>>(
          model::NetworkShape{train.features, options_.hidden, outputs, options_.activation});
    base::require(train.height > 0, "--model lenet needs images; the samples of {} are none", train.name);
    return std::make_unique<model::Network<float>>(
        model::LeNetShape{train.height, train.width, outputs, options_.activation});
  }

  std::string model_name() const {
    if (options_.lenet)
      return fmt::format("lenet {}x{}-{} {}", split_.train.height, split_.train.width, network_->outputs(),
                         model::name_of(options_.activation));
    std::string hidden;
    for (const std::size_t width : options_.hidden) hidden += fmt::format("-{}", width);
    return fmt::format("{}{}-{} {}", network_->inputs(), hidden, network_->outputs(),
                       model::name_of(options_.activation));
  }

  /// The tail is registered last, and so it goes first: it is known when the backward pass begins.
  void make_reducer() {
    std::vector<Reducer::Parameter> parameters;
    for (const model::ParameterSpan& span : network_->spans())
      parameters.push_back({.name = span.name, .count = span.count, .rows = span.rows});
    parameters.push_back({.name = "tail", .count = tail_size, .exact = true});
    ReducerOptions reducer{.bucket_bytes = options_.bucket_bytes,
                           .first_bucket_bytes = std::min(options_.first_bucket_bytes, options_.bucket_bytes),
                           .op = Op::sum,
                           .order = call_.order,
                           .algorithm = options_.algorithm,
                           .codec = options_.codec,
                           .seed = options_.seed,
                           .journal = [this](std::string_view line) { files_.journal(line); }};
    reducer_ = std::make_unique<Reducer>(world_, std::move(parameters), reducer);
  }

  std::string description() const {
    return fmt::format(
        "training {} ({} samples, {} to test) on {} rank{}: {} parameters, global batch {}, {} steps{}",
        split_.train.name, split_.train.samples(), split_.test.samples(), world_.size(),
        world_.size() == 1 ? "" : "s", parameters_.size(), options_.batch, total_steps_,
        step_ > 0 ? fmt::format(", going on after step {}", step_) : "");
  }

  /// Only rank 0 writes, but all stop if it cannot: before the first step, not after the last.
  void open_output() {
    agreed(world_, [&] {
      if (options_.output.empty() || world_.rank() != 0) return;
      files_.open(options_.output, !options_.resume.empty(), options_.step_log);
    });
    if (options_.output.empty()) return;
    summary_.metrics = options_.output + "/metrics.jsonl";
    summary_.checkpoint = options_.output + "/checkpoint.tutti";
  }

  Checkpoint snapshot() const {
    Checkpoint checkpoint{.step = step_};
    checkpoint.identity = {
        {"model", model_name()},
        {"loss", std::string(model::name_of(options_.loss))},
        {"optimizer", options_.optimizer.name},
        {"data", fmt::format("{} of {} samples", split_.train.name, split_.train.samples())},
        {"split seed", fmt::format("{}", options_.data.split_seed)},
        {"seed", fmt::format("{}", options_.seed)},
        {"global batch", fmt::format("{}", options_.batch)},
    };
    checkpoint.arrays.emplace_back("parameters", parameters_);
    for (const auto& array : optimizer_->state())
      checkpoint.arrays.emplace_back(array.name,
                                     std::vector<float>(array.values.begin(), array.values.end()));
    return checkpoint;
  }

  /// Rank 0 reads, so that a checkpoint on its own disk is enough.
  void resume() {
    std::string bytes;
    agreed(world_, [&] {
      if (world_.rank() == 0) bytes = data::read_file(options_.resume);
    });
    bytes = broadcast_text(world_, std::move(bytes));
    Checkpoint found;
    agreed(world_, [&] {
      found = decode(bytes, options_.resume);
      const Checkpoint expected = snapshot();
      require_same_identity(found, expected, options_.resume);
      base::require(found.arrays.size() == expected.arrays.size(),
                    "checkpoint '{}' has {} arrays, this run {}", options_.resume, found.arrays.size(),
                    expected.arrays.size());
      const auto state = optimizer_->state();
      for (std::size_t i = 0; i < found.arrays.size(); ++i) {
        const std::span<float> target = i == 0 ? std::span(parameters_) : state[i - 1].values;
        base::require(found.arrays[i].first == expected.arrays[i].first &&
                          found.arrays[i].second.size() == target.size(),
                      "checkpoint '{}': array '{}' of {} values where '{}' of {} is needed", options_.resume,
                      found.arrays[i].first, found.arrays[i].second.size(), expected.arrays[i].first,
                      target.size());
        std::copy(found.arrays[i].second.begin(), found.arrays[i].second.end(), target.begin());
      }
      base::require(found.step < total_steps_,
                    "checkpoint '{}' is of step {}, and this run ends after {}: nothing is left to train",
                    options_.resume, found.step, total_steps_);
      step_ = found.step;
    });
    // Without a codec now, too: what an earlier one has not sent goes with the first gradients.
    agreed(world_, [&] {
      if (found.unsent.ranks > 0) reducer_->restore(found.unsent);
    });
  }

  void write_checkpoint() {
    if (options_.output.empty()) return;
    ReducerState unsent;
    if (!options_.codec.empty()) unsent = reducer_->save();
    agreed(world_, [&] {
      if (world_.rank() != 0) return;
      Checkpoint checkpoint = snapshot();
      checkpoint.unsent = std::move(unsent);
      write_atomically(summary_.checkpoint, encode(checkpoint));
    });
  }

  void gather(const data::Dataset& set, std::span<const std::uint32_t> samples) {
    x_.clear();
    labels_.clear();
    targets_.clear();
    for (const std::uint32_t sample : samples) {
      const auto row = set.row(sample);
      x_.insert(x_.end(), row.begin(), row.end());
      if (set.classes == 0) {
        targets_.push_back(set.targets[sample]);
        continue;
      }
      labels_.push_back(set.labels[sample]);
      for (std::size_t c = 0; options_.loss == model::Loss::squared && c < set.classes; ++c)
        targets_.push_back(c == labels_.back() ? 1.0F : 0.0F);
    }
  }

  model::BatchResult losses(std::span<const float> outputs, float scale,
                            std::span<float> output_gradient) const {
    const std::size_t classes = split_.train.classes;
    if (options_.loss == model::Loss::cross_entropy)
      return model::cross_entropy<float>(outputs, labels_, classes, scale, output_gradient);
    model::BatchResult result{.loss = model::squared<float>(outputs, targets_, scale, output_gradient)};
    if (classes > 0) result.correct = model::count_correct<float>(outputs, labels_, classes);
    return result;
  }

  void take_step() {
    const double begin = now();
    const auto batch = order_->global_batch(step_);
    const auto mine = order_->local_batch(step_, world_.rank(), world_.size());
    gather(split_.train, mine);
    const auto outputs = network_->forward(parameters_, x_, mine.size());
    output_gradient_.resize(outputs.size());
    // Divided by the samples of all ranks, not of this one: parts of unequal size then add up to the right
    // mean.
    const auto result = losses(outputs, 1.0F / static_cast<float>(batch.size()), output_gradient_);
    const std::size_t tail_number = network_->spans().size();
    const std::span tail = reducer_->gradient(tail_number);
    tail[tail_loss] = static_cast<float>(result.loss);
    tail[tail_correct] = static_cast<float>(result.correct);
    tail[tail_stop] = surroundings_.stop_requested && surroundings_.stop_requested() ? 1.0F : 0.0F;
    reducer_->ready(tail_number);
    // Layers give their gradients from the last to the first: the order that the reducer expects.
    const std::span gradient = reducer_->buffer().first(parameters_.size());
    network_->backward(parameters_, x_, output_gradient_, gradient,
                       [this](std::size_t first, std::size_t last) {
                         for (std::size_t i = last; i-- > first;) reducer_->ready(i);
                       });
    const double computed = now();
    reducer_->finish();
    const double reduced = now();
    require_finite(static_cast<float>(result.loss), tail[tail_loss], gradient);
    ++step_;
    optimizer_->apply(parameters_, gradient, rate_.at(step_), step_);
    stopped_ = tail[tail_stop] > 0;
    epoch_loss_ += static_cast<double>(tail[tail_loss]);
    epoch_correct_ += static_cast<double>(tail[tail_correct]);
    epoch_samples_ += batch.size();
    const double end = now();
    step_seconds_.push_back(end - begin);
    epoch_seconds_ += end - begin;
    communication_seconds_ += reduced - computed;
    log_step(end - begin, computed - begin);
    if (world_.rank() == 0) surroundings_.reporter.step(step_, total_steps_);
  }

  /// Sums are the same everywhere, so every rank comes here or none; then each says whether it was the one.
  void require_finite(float own_loss, float total_loss, std::span<const float> gradient) {
    const bool finite = std::isfinite(total_loss) && std::all_of(gradient.begin(), gradient.end(),
                                                                 [](float g) { return std::isfinite(g); });
    if (finite) return;
    const std::string what =
        fmt::format("step {}: {}", step_ + 1,
                    std::isfinite(own_loss) ? "the sum of the gradients is not finite"
                                            : fmt::format("the loss is {}", std::abs(own_loss)));
    const bool mine = !std::isfinite(own_loss);
    std::int32_t guilty = mine ? 1 : 0;
    world_.allreduce(std::span(&guilty, 1), Op::max, {.name = "finite"});
    agree(world_, mine || guilty == 0 ? what + "; try a smaller --lr" : "");
  }

  /// Each rank tests its part; sums of integers and of float64 in canonical order.
  void evaluate(EpochMetrics& metrics) {
    const data::Dataset& test = split_.test;
    const data::Part part = data::part_of(test.samples(), world_.rank(), world_.size());
    std::vector<std::uint32_t> samples;
    for (std::size_t i = part.first; i < part.last; ++i) samples.push_back(static_cast<std::uint32_t>(i));
    double sums[2] = {0, 0};
    constexpr std::size_t at_once = 1024;
    for (std::size_t i = 0; i < samples.size(); i += at_once) {
      gather(test, std::span(samples).subspan(i, std::min(at_once, samples.size() - i)));
      const auto result = losses(network_->forward(parameters_, x_, x_.size() / test.features), 1.0F, {});
      sums[0] += result.loss;
      sums[1] += static_cast<double>(result.correct);
    }
    world_.allreduce(std::span<double>(sums), Op::sum, {.name = "evaluation"});
    metrics.test_loss = sums[0] / static_cast<double>(test.samples());
    metrics.test_accuracy = sums[1] / static_cast<double>(test.samples());
  }

  void end_epoch(bool last) {
    EpochMetrics metrics{.epoch = (step_ + order_->steps_per_epoch() - 1) / order_->steps_per_epoch(),
                         .step = step_};
    const auto samples = static_cast<double>(epoch_samples_);
    metrics.train_loss = epoch_loss_ / samples;
    metrics.train_accuracy = epoch_correct_ / samples;
    metrics.rate = static_cast<double>(rate_.at(step_));
    auto middle = step_seconds_.begin() + static_cast<std::ptrdiff_t>(step_seconds_.size() / 2);
    std::nth_element(step_seconds_.begin(), middle, step_seconds_.end());
    metrics.step_seconds = *middle;
    metrics.communication = epoch_seconds_ > 0 ? communication_seconds_ / epoch_seconds_ : 0;
    metrics.samples_per_second = epoch_seconds_ > 0 ? samples / epoch_seconds_ : 0;
    evaluate(metrics);
    summary_.last = metrics;
    step_seconds_.clear();
    epoch_loss_ = epoch_correct_ = epoch_seconds_ = communication_seconds_ = 0;
    epoch_samples_ = 0;
    write_metrics(json_of(metrics, classification()));
    const std::size_t every = std::max<std::size_t>(1, options_.log_every);
    if (world_.rank() == 0 && (last || metrics.epoch % every == 0)) {
      surroundings_.reporter.epoch(metrics,
                                   (total_steps_ + order_->steps_per_epoch() - 1) / order_->steps_per_epoch(),
                                   classification());
    }
  }

  void write_metrics(const std::string& line) {
    files_.metrics(line);
    agreed(world_, [&] { files_.flush(); });
  }

  void log_step(double seconds, double compute) {
    if (world_.rank() != 0 || !options_.step_log) return;
    StepTimes times{.step = step_, .seconds = seconds, .compute = compute};
    for (const BucketTime& bucket : reducer_->bucket_times()) {
      times.exposed += bucket.exposed;
      times.gradient_bytes += bucket.bytes;
    }
    const std::uint64_t sent = world_.state().traffic().bytes;
    times.sent_bytes = sent - std::exchange(sent_bytes_, sent);
    files_.step(times);
  }

  Summary finish(double seconds) {
    summary_.replica_hash = verify_replicas(world_, parameters_);
    write_checkpoint();
    summary_.steps = step_;
    summary_.ranks = static_cast<std::size_t>(world_.size());
    summary_.parameters = parameters_.size();
    summary_.seconds = seconds;
    summary_.classification = classification();
    summary_.stopped = stopped_ && step_ < total_steps_;
    write_metrics(json_of(summary_));
    if (world_.rank() == 0) surroundings_.reporter.finished(summary_);
    return summary_;
  }

  Communicator& world_;
  const TrainOptions& options_;
  const Surroundings& surroundings_;
  data::Split split_;
  std::unique_ptr<data::SampleOrder> order_;
  std::unique_ptr<model::Network<float>> network_;
  std::unique_ptr<model::Optimizer> optimizer_;
  model::RateSchedule rate_;
  CallOptions call_;
  std::size_t total_steps_ = 0;
  std::size_t step_ = 0;
  bool stopped_ = false;
  std::vector<float> parameters_;
  std::unique_ptr<Reducer> reducer_;  ///< of the gradient, then the tail
  std::vector<float> x_;
  std::vector<std::uint32_t> labels_;
  std::vector<float> targets_;
  std::vector<float> output_gradient_;
  RunFiles files_;
  std::uint64_t sent_bytes_ = 0;
  Summary summary_;
  std::vector<double> step_seconds_;
  double epoch_loss_ = 0;
  double epoch_correct_ = 0;
  double epoch_seconds_ = 0;
  double communication_seconds_ = 0;
  std::size_t epoch_samples_ = 0;
};

}  // namespace

std::uint64_t verify_replicas(Communicator& world, std::span<const float> parameters) {
  const std::uint64_t mine = hash_of(parameters);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.allgather(std::span(&mine, 1), std::span(all), {.name = "replica hashes"});
  std::vector<std::size_t> others;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) others.push_back(rank);
  }
  if (!others.empty()) {
    base::fail<base::AgreedError>(
        "the replicas differ: the parameters of rank {} are not those of rank 0 (hash {:016x}): memory is "
        "damaged, or the ranks run different programs",
        fmt::join(others, ", "), all[0]);
  }
  return mine;
}

Summary train(Communicator& world, const TrainOptions& options, const Surroundings& surroundings) {
  return Training(world, options, surroundings).run();
}

}  // namespace tutti::train
