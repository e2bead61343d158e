#include <array>

#include "compress/codec/codecs.hpp"

namespace tutti::compress {
namespace {

constexpr std::array table{
    Entry{"fp16", "IEEE 754 binary16, to nearest even", "", make_fp16},
    Entry{"bf16", "the upper half of binary32, to nearest even", "", make_bf16},
};

}  // namespace

std::span<const Entry> codecs() {
  return table;
}

}  // namespace tutti::compress
