#include <array>

#include "compress/codec/codecs.hpp"

namespace tutti::compress {
namespace {

constexpr std::array table{
    Entry{"fp16", "IEEE 754 binary16, to nearest even", "", make_fp16},
    Entry{"bf16", "the upper half of binary32, to nearest even", "", make_bf16},
    Entry{"int8", "block quantisation, as qgZ of ZeRO++",
          "block=256, rounding=nearest|stochastic, feedback=off", make_int8},
    Entry{"int4", "block quantisation, as qgZ of ZeRO++; with error feedback",
          "block=64, rounding=nearest|stochastic, feedback=on", make_int4},
    Entry{"fp8", "e4m3 of OCP OFP8 1.0, scaled by block",
          "block=256, rounding=nearest|stochastic, feedback=off", make_fp8},
};

}  // namespace

std::span<const Entry> codecs() {
  return table;
}

}  // namespace tutti::compress
