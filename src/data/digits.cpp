#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "data/csv.hpp"
#include "data/dataset.hpp"
#include "data/file.hpp"
#include "data/order.hpp"

// The file goes into the program as it is; the build passes its path.
asm(R"(
    .section .rodata
    .balign 16
    .globl tutti_digits_begin
    .globl tutti_digits_end
tutti_digits_begin:
    .incbin ")" TUTTI_DIGITS_FILE R"("
tutti_digits_end:
    .byte 0
    .previous
)");

extern "C" {
extern const unsigned char tutti_digits_begin[];
extern const unsigned char tutti_digits_end[];
}

namespace tutti::data {
namespace {

constexpr std::size_t digit_samples = 1797;
constexpr std::size_t digit_train_samples = 1437;
constexpr std::size_t digit_pixels = 64;

}  // namespace

Split load_digits(std::uint64_t split_seed) {
  const std::string text = decompress({tutti_digits_begin, tutti_digits_end}, "the built-in digits");
  const Table table = parse_csv(text, "the built-in digits");
  base::require(table.rows == digit_samples && table.columns == digit_pixels + 1,
                "the built-in digits are damaged: {} rows of {} numbers", table.rows, table.columns);
  const auto order = permutation(digit_samples, split_seed, 0);
  Split split;
  for (Dataset* part : {&split.train, &split.test}) {
    part->name = "digits";
    part->features = digit_pixels;
    part->classes = 10;
    part->height = part->width = 8;
  }
  for (std::size_t i = 0; i < digit_samples; ++i) {
    Dataset& part = i < digit_train_samples ? split.train : split.test;
    const auto row = table.row(order[i]);
    for (std::size_t p = 0; p < digit_pixels; ++p) part.x.push_back(static_cast<float>(row[p] / 16));
    part.labels.push_back(static_cast<std::uint32_t>(row[digit_pixels]));
  }
  return split;
}

}  // namespace tutti::data
