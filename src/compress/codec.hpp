#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compress/arithmetic/philox.hpp"
#include "tutti/types.hpp"

namespace tutti::compress {

/// Whether sums of encodings are encodings of sums (linear); whether the owner of a slice may decode what all
/// ranks have sent, add, and encode the sum again (reencodable); or whether each rank must get what every
/// other has sent, and add (gatherable).
enum class Algebra : std::uint8_t { linear, reencodable, gatherable };

/// What a codec does to a gradient, mildest first: each setting of `auto` allows its own class and those
/// before it. cast: rounds every value to a shorter type. bounded: the error of a value is bounded by its
/// block's largest. feedback: only what is left out now and sent later makes it good.
enum class ErrorClass : std::uint8_t { exact, cast, bounded, feedback };

/// Where values come from: a run of elements of one parameter.
struct Piece {
  std::uint32_t parameter = 0;  ///< its number, the same on every rank and in every run
  std::uint64_t offset = 0;     ///< of the first element, in the parameter
  std::uint64_t size = 0;       ///< elements of the whole parameter
  std::uint64_t rows = 0;       ///< of a matrix; 0: it is none
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
  Rank rank = 0;
  Rank ranks = 1;

  Draws draws() const {
    return {.seed = seed, .step = step, .parameter = parameter, .rank = static_cast<std::uint32_t>(rank)};
  }
};

/// What a codec keeps of one parameter between steps: arrays by name, each as long as the parameter unless it
/// says otherwise, and numbers by name. Zero at first. Saved in checkpoints.
class State {
 public:
  explicit State(std::uint64_t size) : size_(size) {}

  std::uint64_t size() const { return size_; }

  /// Made at the first call. Throws InvalidArgument if it is there with another size.
  std::span<float> array(std::string_view name);
  std::span<float> array(std::string_view name, std::size_t size);
  double& number(std::string_view name);

  const std::map<std::string, std::vector<float>, std::less<>>& arrays() const { return arrays_; }

  const std::map<std::string, double, std::less<>>& numbers() const { return numbers_; }

 private:
  std::uint64_t size_;
  std::map<std::string, std::vector<float>, std::less<>> arrays_;
  std::map<std::string, double, std::less<>> numbers_;
};

/// The array of what was not sent, in every codec with error feedback.
inline constexpr std::string_view residual_name = "residual";

/// That of a piece of `count` elements. Throws InvalidArgument if these are not of the parameter.
float* residual_of(const Piece& piece, std::size_t count, State& state);

/// Turns fp32 values into fewer bytes and back. One object serves all parameters; what it keeps is in State.
/// Bytes depend on the arguments only: the same on every machine, instruction set and GPU.
class Codec {
 public:
  Codec() = default;
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  virtual ~Codec() = default;

  virtual Algebra algebra() const = 0;
  virtual ErrorClass error_class() const = 0;
  /// It keeps what it has not sent, in State's residual, and adds it to the next values.
  virtual bool feedback() const = 0;

  /// State's array of this name is the same on all ranks; others add up, as residuals do, when there are
  /// more or fewer ranks. What owners of slices keep is their residual only.
  virtual bool shared(std::string_view /*array*/) const { return false; }

  /// Steps at the start of a run in which gradients go as they are.
  virtual std::uint64_t exact_steps() const { return 0; }

  /// Elements that are encoded together: pieces start and end on multiples of this, or with the parameter.
  virtual std::size_t block() const { return 1; }

  /// Bytes of an encoding of `count` elements: never more; of reencodable codecs exactly these.
  virtual std::size_t max_bytes(std::size_t count) const = 0;
  /// Encodes `in` (plus the residual, if it feeds back; then stores what was not sent). `out` has at least
  /// max_bytes(). Returns the bytes used.
  virtual std::size_t encode(const Piece& piece, std::span<const float> in, State& state,
                             std::span<std::byte> out) = 0;
  /// out = what was encoded; `in` is exactly one encoding of out.size() elements. Throws MismatchError if it
  /// cannot be one.
  virtual void decode(const Piece& piece, std::span<const std::byte> in, std::span<float> out) const = 0;
  /// sum += what was encoded.
  virtual void decode_add(const Piece& piece, std::span<const std::byte> in, std::span<float> sum) const = 0;
};

/// A codec whose encodings are fp32 numbers that an allreduce may sum up, in one round or in several that
/// depend on each other. encode() and decode() are what it does with one rank.
class LinearCodec : public Codec {
 public:
  Algebra algebra() const final { return Algebra::linear; }

  virtual std::size_t rounds() const { return 1; }

  /// It encodes whole parameters only: pieces are not cut.
  virtual bool whole() const { return false; }

  /// Numbers that are summed up in `round` (from 0) for a piece of `count` elements, the same on every rank.
  virtual std::size_t sums(const Piece& piece, std::size_t count, std::size_t round) const;
  /// out = what this rank adds in `round`. `in`: its values, the same in every round, plus the residual, if
  /// it feeds back. `before`: the sums over piece.ranks ranks of the rounds before, one behind the other; may
  /// be changed in place, and must be the same on all ranks then too.
  virtual void contribute(const Piece& piece, std::size_t round, std::span<const float> in, State& state,
                          std::span<float> before, std::span<float> out);
  /// values = the sum over all ranks that the sums of all rounds stand for; values still has what `in` was.
  /// Stores what was not sent, if that depends on sums.
  virtual void conclude(const Piece& piece, std::span<const float> sums, State& state,
                        std::span<float> values);
};

/// "block=256:rounding=stochastic": the options of a codec, each used at most once; what nobody has asked for
/// is an error.
class Options {
 public:
  /// `text` may be empty. `codec` for error reports.
  Options(std::string_view codec, std::string_view text);

  std::uint64_t number(std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                       std::uint64_t most);
  double real(std::string_view name, double otherwise, double least, double most);
  /// One of `allowed`; the first if it is not given.
  std::string choice(std::string_view name, std::span<const std::string_view> allowed);
  bool flag(std::string_view name, bool otherwise);
  /// Throws InvalidArgument if something was given that was not asked for; lists what was.
  void finish() const;

 private:
  const std::string* find(std::string_view name);

  std::string codec_;
  std::map<std::string, std::string, std::less<>> given_;
  std::vector<std::string> asked_;
};

/// The most that an option of steps takes.
inline constexpr std::uint64_t most_steps = 1000000000;

/// One row of the table.
struct Entry {
  std::string_view name;
  std::string_view source;   ///< paper and section
  std::string_view options;  ///< for --help: "block=256, rounding=nearest|stochastic"
  std::unique_ptr<Codec> (*make)(Options& options);
};

/// Every codec: the only registration point.
std::span<const Entry> codecs();
/// "int8", "int8:block=128". Throws InvalidArgument that lists names or options.
std::unique_ptr<Codec> make_codec(std::string_view text);

}  // namespace tutti::compress
