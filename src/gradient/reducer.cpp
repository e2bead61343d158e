#include "tutti/reducer.hpp"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "compress/codec.hpp"
#include "exchange/coded.hpp"
#include "gradient/automatic.hpp"
#include "gradient/census.hpp"
#include "gradient/layout.hpp"
#include "gradient/parts.hpp"
#include "gradient/sparse.hpp"
#include "gradient/states.hpp"
#include "kernel/kernel.hpp"

namespace tutti {
namespace {

using gradient::SparseGradient;

std::uint64_t hash_of(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = base::mix(hash ^ static_cast<std::uint8_t>(c));
  return hash;
}

}  // namespace

class Reducer::Impl {
 public:
  Impl(Communicator& communicator, std::vector<Parameter> parameters, const ReducerOptions& options)
      : communicator_(communicator),
        parameters_(std::move(parameters)),
        options_(options),
        census_(communicator, names(), options.missing, options.join),
        sparse_(parameters_.size()),
        states_(communicator, parameters_, options.op),
        ready_(parameters_.size(), 0) {
    base::require(!parameters_.empty(), "a Reducer of no parameters");
    base::require(options.op == Op::average || options.op == Op::sum,
                  "a Reducer averages or sums up gradients; it cannot take their {}", name_of(options.op));
    const auto automatic = gradient::automatic_error(options.codec);
    if (automatic) automatic_.emplace(communicator, *automatic, options.journal);
    if (!automatic && !options.codec.empty()) codec_ = compress::make_codec(options.codec);
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const Parameter& parameter = parameters_[i];
      base::require(parameter.rows == 0 || parameter.count % parameter.rows == 0,
                    "parameter '{}' has {} elements, which are no {} rows of equal length", parameter.name,
                    parameter.count, parameter.rows);
      if (parameter.sparse) sparse_[i] = make_sparse(parameter);
      counts_.push_back(parameter.sparse ? 0 : parameter.count);
      exact_.push_back(options.codec.empty() || parameter.exact || parameter.sparse ? 1 : 0);
      if (exact_.back() == 0 && codec_) states_.assign(i, codec_.get(), options_.codec);
    }
    require_same_everywhere();
    order_.resize(parameters_.size());
    std::iota(order_.rbegin(), order_.rend(), 0U);
    lay_out();
    buffer_ = communicator_.allocate<float>(layout_.size);
  }

  std::span<float> gradient(std::size_t parameter) {
    require_known(parameter);
    base::require(!sparse_[parameter], "the gradient of '{}' is sparse: there is no view of it, see rows()",
                  parameters_[parameter].name);
    return buffer_.span().subspan(layout_.offsets[parameter], counts_[parameter]);
  }

  std::span<float> buffer() { return buffer_.span(); }

  void ready(std::size_t parameter) {
    require_known(parameter);
    base::require(ready_[parameter] == 0, "the gradient of '{}' is ready for the second time in this step",
                  parameters_[parameter].name);
    census_.announce(true);
    ready_[parameter] = 1;
    if (!learned_) seen_.push_back(static_cast<std::uint32_t>(parameter));
    if (!sparse_[parameter]) states_.settle(parameter, gradient(parameter));
    fill(parameter);
  }

  SparseGradient& sparse(std::size_t parameter) {
    require_known(parameter);
    base::require(sparse_[parameter].has_value(), "parameter '{}' is not registered as sparse",
                  parameters_[parameter].name);
    return *sparse_[parameter];
  }

  void add_rows(std::size_t parameter, std::span<const std::uint32_t> rows, std::span<const float> values) {
    SparseGradient& gradient = sparse(parameter);
    base::require(ready_[parameter] == 0, "rows of '{}' after its gradient was ready in this step",
                  parameters_[parameter].name);
    gradient.add(rows, values);
  }

  bool join() {
    base::require(options_.join,
                  "join() of a Reducer whose options do not allow it; set ReducerOptions::join");
    require_between_steps("join");
    census_.announce(false);
    const bool anybody = census_.count() > 0;
    if (anybody)
      complete(false);
    else
      census_.end_step();
    return anybody;
  }

  void finish() {
    census_.announce(true);
    complete(true);
  }

  /// The rest of a step. `live`: this rank has data.
  void complete(bool live) {
    std::vector<std::uint8_t> had = ready_;
    std::vector<std::uint8_t> gets = had;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!live) had[i] = 1;  // nobody expects any
      if (states_.owes(i)) gets[i] = 1;
    }
    const std::vector<std::uint32_t> order = order_;  // of a rank that has nothing, it is as good as any
    for (const std::uint32_t i : order) {
      if (ready_[i] != 0) continue;
      if (sparse_[i])
        sparse_[i]->clear();
      else
        std::ranges::fill(gradient(i), 0.0F);
      ready(i);
    }
    // All ranks have started the same calls by now.
    census_.agree(had, std::move(gets));
    wait();
    if (options_.join) share_among(census_.count());
    census_.end_step();
    ++step_;
    begin_step();
    choose();
    census_.complain();
  }

  ReducerState save() {
    require_between_steps("save");
    return {.step = step_, .ranks = communicator_.size(), .arrays = states_.save()};
  }

  void restore(const ReducerState& state) {
    require_between_steps("restore");
    step_ = state.step;
    if (codec_) divide_for_codec();
    states_.restore(state, owned());
  }

  bool got_gradient(std::size_t parameter) const { return census_.anywhere(parameter); }

  Rank live() const { return census_.live(); }

  std::span<const BucketTime> times() const { return times_; }

  std::size_t buckets() const { return layout_.buckets.size(); }

  std::uint64_t generation() const { return generation_; }

 private:
  void require_known(std::size_t parameter) const {
    base::require(parameter < parameters_.size(), "parameter {} of {}", parameter, parameters_.size());
  }

  void require_between_steps(std::string_view what) const {
    base::require(std::ranges::find(ready_, std::uint8_t{1}) == ready_.end(),
                  "{} of a Reducer in the middle of a step; call finish() first", what);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Parameter& parameter : parameters_) names.push_back(parameter.name);
    return names;
  }

  SparseGradient make_sparse(const Parameter& parameter) const {
    constexpr std::size_t most = std::size_t{1} << 32U;
    base::require(parameter.rows > 0 && parameter.rows <= most && parameter.count >= parameter.rows,
                  "sparse parameter '{}' has {} rows and {} elements: expected a matrix of 1 to 2^32 rows",
                  parameter.name, parameter.rows, parameter.count);
    return {parameter.name, parameter.rows, parameter.count / parameter.rows};
  }

  void wait() {
    times_.resize(layout_.buckets.size());
    for (std::size_t i = 0; i < layout_.buckets.size(); ++i) {
      const Seconds begin = clock_.now();
      const bool plain = coded_[i].empty() && layout_.buckets[i].kind != gradient::Kind::sparse;
      if (i < works_.size()) {
        for (Work& work : works_[i]) work.wait();
      } else if (!plain) {
        for (Work& work : start(i)) work.wait();
      } else {
        // Nothing is left to compute beside it: no thread needs to be woken for that.
        communicator_.allreduce(part(i), op_of(i), call_options());
      }
      times_[i] = {layout_.buckets[i].count * sizeof(float), (clock_.now() - begin).count()};
    }
    for (auto& sparse : sparse_) {
      if (sparse) sparse->finish();
    }
  }

  /// What ranks without data may make of an average is known at the end only: until then exact gradients are
  /// summed up. Codecs go on as if all had data: what they have kept has the scale of that.
  Op op_of(std::size_t bucket) const {
    return options_.join && coded_[bucket].empty() ? Op::sum : options_.op;
  }

  void share_among(Rank live) {
    if (options_.op != Op::average) return;
    const Rank ranks = communicator_.size();
    for (std::size_t i = 0; i < layout_.buckets.size(); ++i) {
      const auto values = part(i);
      if (coded_[i].empty())
        kernel::convert(DType::f32, Op::average, {values.data(), DType::f32}, {values.data(), DType::f32},
                        values.size(), static_cast<std::uint64_t>(live));
      else if (live < ranks)
        kernel::scale(DType::f32, Op::sum, {values.data(), DType::f32}, {values.data(), DType::f32},
                      values.size(), static_cast<double>(ranks) / live);
    }
    for (auto& sparse : sparse_) {
      if (sparse) sparse->divide(live);
    }
  }

  /// After a step: the order that is learned in the first, and codecs that are chosen by measurements.
  void choose() {
    if (codec_ && step_ == codec_->exact_steps()) divide_for_codec();
    if (!learned_) {
      learn();
      if (automatic_) {
        automatic_->start(buckets_to_encode(), step_);
        encode_as_chosen();
      }
    } else if (automatic_ && automatic_->after_step((clock_.now() - last_finish_).count(), step_)) {
      encode_as_chosen();
    }
    last_finish_ = clock_.now();
  }

  CallOptions call_options() const {
    return {.name = "gradients", .order = options_.order, .algorithm = options_.algorithm};
  }

  std::span<float> part(std::size_t bucket) {
    return buffer_.span().subspan(layout_.buckets[bucket].first, layout_.buckets[bucket].count);
  }

  void lay_out() {
    std::vector<gradient::Kind> kinds;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const auto dense = exact_[i] != 0 ? gradient::Kind::exact : gradient::Kind::encoded;
      kinds.push_back(sparse_[i] ? gradient::Kind::sparse : dense);
    }
    layout_ = gradient::lay_out(counts_, kinds, order_, options_.first_bucket_bytes, options_.bucket_bytes);
    divide_for_codec();
    begin_step();
  }

  /// Into parts that are encoded, once the codec begins to.
  void divide_for_codec() {
    coded_.assign(layout_.buckets.size(), {});
    if (!codec_ || step_ < codec_->exact_steps()) return;
    for (std::size_t i = 0; i < layout_.buckets.size(); ++i) {
      if (layout_.buckets[i].kind == gradient::Kind::encoded)
        coded_[i] = gradient::parts_of(runs_of(i), *codec_, communicator_.size());
    }
  }

  std::vector<std::vector<exchange::Run>> buckets_to_encode() const {
    std::vector<std::vector<exchange::Run>> buckets(layout_.buckets.size());
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if (layout_.buckets[i].kind == gradient::Kind::encoded) buckets[i] = runs_of(i);
    }
    return buckets;
  }

  /// What codecs that are given up have not sent goes with the next gradients.
  void encode_as_chosen() {
    for (std::size_t i = 0; i < layout_.buckets.size(); ++i) {
      if (layout_.buckets[i].kind != gradient::Kind::encoded) continue;
      const gradient::Candidate& candidate = automatic_->candidate(automatic_->choice()[i]);
      const std::vector<exchange::Run> runs = runs_of(i);
      for (const exchange::Run& run : runs)
        states_.assign(run.parameter, candidate.codec.get(), candidate.text);
      coded_[i].clear();
      if (candidate.codec) coded_[i] = gradient::parts_of(runs, *candidate.codec, communicator_.size());
    }
  }

  compress::Codec* codec_of(std::size_t bucket) const {
    return automatic_ ? automatic_->candidate(automatic_->choice()[bucket]).codec.get() : codec_.get();
  }

  void begin_step() {
    works_.clear();
    std::ranges::fill(ready_, std::uint8_t{0});
    left_.clear();
    for (const gradient::Bucket& bucket : layout_.buckets) left_.push_back(bucket.parameters);
  }

  /// Starts every bucket that is full and has no predecessor that is not; the last one is left to finish().
  void fill(std::size_t parameter) {
    --left_[layout_.bucket_of[parameter]];
    while (works_.size() + 1 < layout_.buckets.size() && left_[works_.size()] == 0)
      works_.push_back(start(works_.size()));
  }

  std::vector<Work> start(std::size_t bucket) {
    std::vector<Work> works;
    if (layout_.buckets[bucket].kind == gradient::Kind::sparse) {
      const auto parameter = std::ranges::find(layout_.bucket_of, bucket) - layout_.bucket_of.begin();
      works.push_back(sparse_[static_cast<std::size_t>(parameter)]->start(communicator_, op_of(bucket)));
    } else if (coded_[bucket].empty()) {
      works.push_back(communicator_.allreduce_async(part(bucket), op_of(bucket), call_options()));
    }
    for (const gradient::CodedPart& coded : coded_[bucket]) works.push_back(start_coded(bucket, coded));
    return works;
  }

  Work start_coded(std::size_t bucket, const gradient::CodedPart& coded) {
    return Work(exchange::start_coded_allreduce(communicator_.state(), {.bucket = part(bucket),
                                                                        .runs = coded.runs,
                                                                        .slices = &coded.slices,
                                                                        .states = states_.all(),
                                                                        .codec = codec_of(bucket),
                                                                        .op = options_.op,
                                                                        .step = step_,
                                                                        .seed = options_.seed}));
  }

  /// The parameters of a bucket, as they lie in it.
  std::vector<exchange::Run> runs_of(std::size_t bucket) const {
    std::vector<exchange::Run> runs;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      if (layout_.bucket_of[i] == bucket && counts_[i] > 0)
        runs.push_back({.parameter = static_cast<std::uint32_t>(i),
                        .count = counts_[i],
                        .size = counts_[i],
                        .at = layout_.offsets[i] - layout_.buckets[bucket].first,
                        .rows = parameters_[i].rows});
    }
    std::ranges::sort(runs, {}, &exchange::Run::at);
    return runs;
  }

  void require_same_everywhere() {
    std::uint64_t hash = base::mix(parameters_.size());
    for (const Parameter& parameter : parameters_)
      hash = base::mix(base::mix(hash_of(parameter.name, hash) ^ parameter.count) + parameter.rows);
    hash = base::mix(hash ^ options_.bucket_bytes ^ base::mix(options_.first_bucket_bytes));
    for (const auto& sparse : sparse_) hash = base::mix(hash + (sparse ? 1 : 0));
    hash = base::mix(hash + static_cast<std::uint64_t>(options_.missing) + (options_.join ? 16 : 0));
    hash = hash_of(options_.codec, base::mix(hash ^ options_.seed));
    for (const std::uint8_t exact : exact_) hash = base::mix(hash + exact);
    std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator_.size()));
    communicator_.allgather(std::span(&std::as_const(hash), 1), std::span(all), {.name = "parameters"});
    const auto other = std::ranges::find_if(all, [&](std::uint64_t h) { return h != all[0]; });
    if (other == all.end()) return;
    base::fail<MismatchError>(
        "the parameters (names, sizes, order) or bucket sizes of the Reducer on rank {} are not those on "
        "rank 0; "
        "register the same on every rank",
        other - all.begin());
  }

  /// Collective: rank 0's order of this step is that of all later ones.
  void learn() {
    learned_ = true;
    std::vector<std::uint32_t> order = std::exchange(seen_, {});
    communicator_.broadcast(std::span(order), 0, {.name = "order of gradients"});
    if (order == order_) return;
    const gradient::Layout before = layout_;
    const std::vector<float> values(buffer_.begin(), buffer_.end());
    order_ = std::move(order);
    lay_out();
    for (std::size_t i = 0; i < counts_.size(); ++i)
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(before.offsets[i]), counts_[i],
                  buffer_.begin() + static_cast<std::ptrdiff_t>(layout_.offsets[i]));
    ++generation_;
    states_.hand_over(owned());
  }

  /// The runs whose sums this rank encodes.
  std::vector<exchange::Run> owned() const {
    std::vector<exchange::Run> mine;
    for (const auto& parts : coded_) {
      for (const gradient::CodedPart& part : parts) {
        if (part.slices.empty()) continue;
        const auto& slice = part.slices[static_cast<std::size_t>(communicator_.rank())];
        mine.insert(mine.end(), slice.begin(), slice.end());
      }
    }
    return mine;
  }

  Communicator& communicator_;
  std::vector<Parameter> parameters_;
  ReducerOptions options_;
  base::SteadyClock clock_;
  gradient::Census census_;
  std::vector<std::optional<SparseGradient>> sparse_;  ///< by parameter
  std::vector<std::size_t> counts_;
  std::vector<std::uint32_t> order_;  ///< in which gradients are ready
  std::vector<std::uint32_t> seen_;   ///< in this step, until it is learned
  bool learned_ = false;
  std::uint64_t generation_ = 0;
  gradient::Layout layout_;
  std::unique_ptr<compress::Codec> codec_;  ///< null: none
  std::optional<gradient::Automatic> automatic_;
  Seconds last_finish_{0};
  std::vector<std::uint8_t> exact_;
  gradient::CodecStates states_;
  std::vector<std::vector<gradient::CodedPart>> coded_;  ///< by bucket and part; none: as they are
  std::uint64_t step_ = 0;
  std::vector<std::uint8_t> ready_;
  std::vector<std::size_t> left_;  ///< of each bucket: parameters that are not ready
  Buffer<float> buffer_;
  std::vector<std::vector<Work>>
      works_;  ///< of the buckets that have started; after the buffer: waits when it goes
  std::vector<BucketTime> times_;
};

Reducer::Reducer(Communicator& communicator, std::vector<Parameter> parameters, const ReducerOptions& options)
    : impl_(std::make_unique<Impl>(communicator, std::move(parameters), options)) {}

Reducer::Reducer(Reducer&&) noexcept = default;
Reducer& Reducer::operator=(Reducer&&) noexcept = default;
Reducer::~Reducer() = default;

std::span<float> Reducer::gradient(std::size_t parameter) {
  return impl_->gradient(parameter);
}

std::span<float> Reducer::buffer() {
  return impl_->buffer();
}

std::uint64_t Reducer::generation() const noexcept {
  return impl_->generation();
}

void Reducer::ready(std::size_t parameter) {
  impl_->ready(parameter);
}

void Reducer::add_rows(std::size_t parameter, std::span<const std::uint32_t> rows,
                       std::span<const float> values) {
  impl_->add_rows(parameter, rows, values);
}

SparseRows Reducer::rows(std::size_t parameter) const {
  return impl_->sparse(parameter).result();
}

void Reducer::finish() {
  impl_->finish();
}

bool Reducer::join() {
  return impl_->join();
}

Rank Reducer::live() const {
  return impl_->live();
}

ReducerState Reducer::save() {
  return impl_->save();
}

void Reducer::restore(const ReducerState& state) {
  impl_->restore(state);
}

bool Reducer::got_gradient(std::size_t parameter) const {
  return impl_->got_gradient(parameter);
}

std::span<const BucketTime> Reducer::bucket_times() const {
  return impl_->times();
}

std::size_t Reducer::buckets() const {
  return impl_->buckets();
}

}  // namespace tutti
