#include "cuda/blocks.hpp"

#include "cuda/kernels/blocks.hpp"
#include "cuda/kernels/launch.cuh"

namespace tutti::cuda {
namespace {

using compress::BlockFormat;

/// Calls run.template operator()<format>().
template <class Run>
cudaError_t by_format(BlockFormat format, const Run& run) {
  switch (format) {
    case BlockFormat::int8: return run.template operator()<BlockFormat::int8>();
    case BlockFormat::int4: return run.template operator()<BlockFormat::int4>();
    case BlockFormat::fp8: return run.template operator()<BlockFormat::fp8>();
    case BlockFormat::ternary: return run.template operator()<BlockFormat::ternary>();
    case BlockFormat::onebit: return run.template operator()<BlockFormat::onebit>();
    case BlockFormat::qsgd8: return run.template operator()<BlockFormat::qsgd8>();
    case BlockFormat::qsgd4: return run.template operator()<BlockFormat::qsgd4>();
    case BlockFormat::terngrad: return run.template operator()<BlockFormat::terngrad>();
  }
  return cudaErrorInvalidValue;
}

template <class Source>
cudaError_t encode(const Encoding& encoding, const Source& source, cudaStream_t stream) {
  return by_format(encoding.format, [&]<BlockFormat format>() {
    return launch<EncodeBlocks<format, Source>>({.source = source,
                                                 .residual = encoding.residual,
                                                 .out = encoding.out,
                                                 .count = encoding.count,
                                                 .first = encoding.first,
                                                 .block = encoding.block,
                                                 .stochastic = encoding.stochastic,
                                                 .draws = encoding.draws,
                                                 .given = encoding.given},
                                                stream);
  });
}

}  // namespace

int encode_blocks(const Encoding& encoding, const float* values, void* stream) {
  return encode(encoding, MemorySource{values}, static_cast<cudaStream_t>(stream));
}

int encode_sum(const Encoding& encoding, const Messages& messages, void* stream) {
  return encode(encoding, MessageSource{messages}, static_cast<cudaStream_t>(stream));
}

int decode_blocks(BlockFormat format, std::uint32_t block, const Messages& messages, float* out,
                  std::uint64_t count, bool add, void* stream) {
  return by_format(format, [&]<BlockFormat chosen>() {
    return launch<DecodeBlocks<chosen>>(
        {.messages = messages, .out = out, .count = count, .block = block, .add = add},
        static_cast<cudaStream_t>(stream));
  });
}

}  // namespace tutti::cuda
