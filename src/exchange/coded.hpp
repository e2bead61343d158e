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
  std::span<float> bucket;                      ///< in: this rank's gradients; out: the average or the sum
  const std::vector<std::vector<Run>>* slices;  ///< of each rank
  std::span<CodedState* const> states;          ///< by parameter
  compress::Codec* codec = nullptr;             ///< reencodable
  Op op = Op::average;
  std::uint64_t step = 0;
  std::uint64_t seed = 0;
};

/// Starts an allreduce by slice owners: every rank encodes each slice for its owner; the owner decodes what
/// all have sent, adds in fp32 in the order of ranks, and encodes the result once; every rank, the owner too,
/// takes what that decodes to. So replicas stay the same to the bit, and the error does not grow with the
/// rank count. With error feedback both encodings keep what they left out: p · applied + local residuals + p
/// · owner residuals = sum of gradients. (Two-shot quantized allreduce, as in CGX, flashinfer and torchft;
/// two-level feedback as in DoubleSqueeze.) All that the request points to must outlive the work. Throws what
/// the communicator throws.
std::shared_ptr<engine::Pending> start_coded_allreduce(engine::CommunicatorState& communicator,
                                                       const CodedRequest& request);

}  // namespace tutti::exchange
