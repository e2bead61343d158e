#pragma once

#include <cstddef>
#include <cstdint>

#include "compress/arithmetic/block.hpp"
#include "compress/arithmetic/format.hpp"
#include "compress/arithmetic/philox.hpp"
#include "cuda/kernels/messages.hpp"

/// Codecs that scale by block, on device memory: compress/simd/block.hpp on a stream, with the same bits. All
/// pointers are of the current device; messages start at multiples of 16 bytes. Nothing waits for the device.
/// Each returns what the launch returned, 0 (cudaSuccess) if it was taken.
namespace tutti::cuda {

struct Encoding {
  compress::BlockFormat format = compress::BlockFormat::int8;
  std::uint32_t block = 256;  ///< a multiple of 64, at most compress::most_in_block
  bool stochastic = false;
  compress::Draws draws = {};
  compress::BlockScale given = {};  ///< of terngrad
  std::uint64_t first = 0;          ///< the number of the first value in its parameter
  std::uint64_t count = 0;
  float* residual = nullptr;  ///< null: no feedback
  std::byte* out = nullptr;   ///< compress::BlockShape::bytes(count)
};

/// Encodes `values`, plus the residual, which then is what was not sent.
int encode_blocks(const Encoding& encoding, const float* values, void* stream);
/// Encodes the sum of these messages of the same format and count: what the owner of a slice does, in one
/// launch, without a sum in memory.
int encode_sum(const Encoding& encoding, const Messages& messages, void* stream);
/// out = (or +=) the sum of these messages, added in their order.
int decode_blocks(compress::BlockFormat format, std::uint32_t block, const Messages& messages, float* out,
                  std::uint64_t count, bool add, void* stream);

}  // namespace tutti::cuda
