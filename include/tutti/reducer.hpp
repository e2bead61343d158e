#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/communicator.hpp"

namespace tutti {

/// What a Reducer does with a parameter that got no gradient on this rank in a step.
enum class Missing : std::uint8_t {
  zero,  ///< this rank contributes zeros
  skip,  ///< zeros too; got_gradient() says whether any rank had one, so that the update can be left out
  error  ///< InvalidArgument on every rank, at finish(), with the names and whose they are
};

struct ReducerOptions {
  std::size_t bucket_bytes = 4 << 20;
  std::size_t first_bucket_bytes = 1 << 20;  ///< small, so that communication starts early
  Op op = Op::average;                       ///< or sum
  std::optional<Order> order = {};           ///< as in CallOptions
  std::string algorithm = {};
  Missing missing = Missing::zero;
  bool join = false;  ///< ranks may run out of data before others: see join()
  /// Encodes gradients for their way: "bf16", "int8:block=128", "topk:density=0.01"; empty: fp32. The result
  /// is the same on every rank; `order` and `algorithm` are for exact parameters only. Codecs with error
  /// feedback keep what they leave out, by parameter. "auto:error=cast": what makes steps fastest, of all
  /// that lose no more than that: exact | cast (default) | bounded | feedback. It is measured: by bucket, at
  /// first and when steps begin to take another time; fp32 where nothing pays. Bits then depend on times.
  std::string codec = {};
  std::uint64_t seed = 0;  ///< of stochastic rounding
  /// Gets a JSON object, in one line, for each decision of codec=auto: on rank 0, from within finish().
  std::function<void(std::string_view)> journal = {};
};

/// One bucket in the last step: times in seconds on this rank's clock.
struct BucketTime {
  std::size_t bytes = 0;
  double exposed = 0;  ///< of waiting for it in finish(), when there was nothing left to compute
};

/// Some rows of a matrix, in ascending order, and their elements, row by row.
struct SparseRows {
  std::span<const std::uint32_t> rows;
  std::span<const float> values;
};

/// What the codecs of a Reducer keep between steps, on all ranks, for a checkpoint: above all what has not
/// been sent yet. `ranks` is how many there were.
struct ReducerState {
  struct Array {
    std::string name;
    std::vector<float> values;
  };

  std::uint64_t step = 0;  ///< stochastic rounding depends on it
  Rank ranks = 0;
  std::vector<Array> arrays;
};

/// Averages gradients while they are being computed. Parameters are registered in the order in which the
/// model uses them; their gradients lie in one buffer (in memory that the ranks of a node share), as views
/// that backward writes to directly. ready(i) says that a gradient is complete; neighbours travel together in
/// buckets, each started as soon as it is full and those before it have started, and finish() waits for all.
/// Bits do not depend on buckets: in canonical order every size gives the same sums.
///
/// Until the order is learned it is that of registration, backwards. The first step learns it: rank 0's is
/// taken by all; if it is another one, the buffer is laid out anew once, at the end of that step, and views
/// must be asked for again (generation() changes).
///
/// Gradient accumulation: add to the views over several backward passes, and call ready() in the last only.
/// All members are collective in the sense that all ranks call start/finish alike; one thread at a time.
class TUTTI_API Reducer {
 public:
  struct Parameter {
    std::string name;
    std::size_t count = 0;  ///< elements
    bool exact = false;     ///< never encoded
    std::size_t rows = 0;   ///< of a matrix, row by row, for codecs that see one; 0: it is none
    bool sparse =
        false;  ///< a matrix, such as an embedding, of which a step touches few rows: see add_rows()
  };

  /// Collective. Throws InvalidArgument if there is no parameter, or if an op other than sum and average is
  /// asked for, or an unknown codec, or if rows do not divide a parameter (a sparse one has 1 to 2^32),
  /// MismatchError if ranks register different parameters. The communicator must outlive it.
  Reducer(Communicator& communicator, std::vector<Parameter> parameters, const ReducerOptions& options = {});
  Reducer(Reducer&&) noexcept;
  Reducer& operator=(Reducer&&) noexcept;
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;
  ~Reducer();

  /// Of one parameter that is not sparse, zeroed at first. Valid while generation() stays.
  std::span<float> gradient(std::size_t parameter);
  /// All of them, in the order in which they lie: that of registration unless another was learned.
  std::span<float> buffer();
  std::uint64_t generation() const noexcept;

  /// Of a sparse parameter: its gradient += these rows; `values` has as many elements for each as a row of
  /// the parameter. Any order; a row may come several times. Rows of all ranks travel as numbers and values,
  /// never encoded, while that is less than the whole matrix (as the last step had them); then as a dense
  /// allreduce, with the same result, to the bit. Throws InvalidArgument.
  void add_rows(std::size_t parameter, std::span<const std::uint32_t> rows, std::span<const float> values);
  /// Of a sparse parameter, after finish() and until the next: the averages (or sums) of the rows that any
  /// rank had. All others are zero.
  SparseRows rows(std::size_t parameter) const;

  /// The gradient is complete. Throws InvalidArgument if it was already in this step.
  void ready(std::size_t parameter);
  /// Collective. Starts what has not started, and waits: then every view holds the average (or sum) over the
  /// ranks. Throws what the collectives throw.
  void finish();

  /// Needs ReducerOptions::join. This rank has run out of data: it takes part in the others' next step with
  /// nothing, and has the same result as they. Call it until it returns false, which is when all ranks have
  /// run out, and apply each result as after finish():
  ///
  ///     while (reducer.join()) optimizer.step();
  ///
  /// Averages are over the ranks that have data. While all have, bits are those without `join`.
  bool join();
  /// In the last step: ranks that had data.
  Rank live() const;

  /// After finish(): whether any rank had a gradient for it, now or, if the codec keeps what it leaves out,
  /// earlier. Always true unless Missing::skip.
  bool got_gradient(std::size_t parameter) const;
  /// Collective, between steps. What all ranks keep, on rank 0; elsewhere no arrays. All of it goes over the
  /// network: each rank's residuals are as large as the model.
  ReducerState save();
  /// Collective, between steps; `state` must be the same on all ranks. Nothing is lost: at another rank count
  /// residuals are added up and handed to the new ranks (and scaled, if this is an average), and with another
  /// codec they go with the next gradients, in 32 steps. With the same ranks and codec the bits are those of
  /// a run that was not interrupted. Throws InvalidArgument, and changes nothing, if the state is of other
  /// parameters.
  void restore(const ReducerState& state);

  /// Of the last step, in the order in which buckets start.
  std::span<const BucketTime> bucket_times() const;
  std::size_t buckets() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tutti
