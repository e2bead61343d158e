#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compress/codec.hpp"
#include "engine/communicator_state.hpp"

namespace tutti::exchange {

/// What a codec keeps of one parameter on this rank: of its own gradients, and as the owner of slices.
struct CodedState {
  explicit CodedState(std::uint64_t size) : local(size), owner(size) {}

  compress::State local;
  compress::State owner;
};

/// A run of a parameter in a bucket.
struct Run {
  std::uint32_t parameter = 0;
  std::uint64_t offset = 0;  ///< in the parameter
  std::uint64_t count = 0;
  std::uint64_t size = 0;  ///< elements of the whole parameter
  std::size_t at = 0;      ///< first element, in the bucket
  std::uint64_t rows = 0;  ///< of the parameter, if it is a matrix; 0: it is none
};

/// Which runs each rank adds up: equal parts of the bucket, as nearly as whole blocks allow. `whole`: the
/// bucket's parameters, or runs of them that begin on a block, one behind the other.
std::vector<std::vector<Run>> slices_of(std::span<const Run> whole, Rank ranks, std::size_t block);

/// Collective, between steps: slices have other owners from now on. What owners have kept goes to the new
/// ones, element by element. `mine`: the runs that this rank owns now, of all buckets.
void hand_over(Communicator& communicator, const compress::Codec& codec, std::span<CodedState* const> states,
               std::span<const Run> mine);

/// One coded allreduce of a bucket.
struct CodedRequest {
  std::span<float> bucket;    ///< in: this rank's gradients; out: the average or the sum
  std::span<const Run> runs;  ///< what is in the bucket; of codecs that are not reencodable: whole parameters
  const std::vector<std::vector<Run>>* slices = nullptr;  ///< of each rank; reencodable codecs only
  std::span<CodedState* const> states;                    ///< by parameter
  compress::Codec* codec = nullptr;
  Op op = Op::average;  ///< or sum
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
};

/// Starts an allreduce of encoded gradients; replicas stay the same to the bit. How depends on the codec:
///
/// - reencodable: every rank encodes each slice for its owner; the owner decodes what all have sent, adds in
///   fp32 in the order of ranks, and encodes the result once; every rank, the owner too, takes what that
///   decodes to. So the error does not grow with the rank count. With error feedback both encodings keep what
///   they left out: p · applied + local residuals + p · owner residuals = sum of gradients. (Two-shot
///   quantized allreduce, as in CGX, flashinfer and torchft; two-level feedback as in DoubleSqueeze.)
/// - gatherable: allgather of encodings of unlike lengths; every rank decodes all and adds in the order of
///   ranks. p · applied + local residuals = sum of gradients.
/// - linear: an allreduce of the encoding for each round of the codec, in canonical order.
///
/// All that the request points to must outlive the work. Throws what the communicator throws.
std::shared_ptr<engine::Pending> start_coded_allreduce(engine::CommunicatorState& communicator,
                                                       const CodedRequest& request);

}  // namespace tutti::exchange
