#include "tutti/types.hpp"

#include <array>
#include <utility>

#include "base/error.hpp"

namespace tutti {
namespace {

constexpr std::array<std::string_view, dtype_count> dtype_names{"f32", "f64", "f16", "bf16", "i8",
                                                                "u8",  "i32", "u32", "i64",  "u64"};
constexpr std::array<std::string_view, op_count> op_names{"sum", "average", "min", "max", "product"};

constexpr std::array<std::pair<std::string_view, DType>, 15> dtype_aliases{{{"float", DType::f32},
                                                                            {"float32", DType::f32},
                                                                            {"fp32", DType::f32},
                                                                            {"double", DType::f64},
                                                                            {"float64", DType::f64},
                                                                            {"fp64", DType::f64},
                                                                            {"half", DType::f16},
                                                                            {"fp16", DType::f16},
                                                                            {"bfloat16", DType::bf16},
                                                                            {"int8", DType::i8},
                                                                            {"uint8", DType::u8},
                                                                            {"int32", DType::i32},
                                                                            {"uint32", DType::u32},
                                                                            {"int64", DType::i64},
                                                                            {"uint64", DType::u64}}};

}  // namespace

std::string_view name_of(DType type) noexcept {
  return dtype_names[static_cast<std::size_t>(type)];
}

std::string_view name_of(Op op) noexcept {
  return op_names[static_cast<std::size_t>(op)];
}

DType dtype_from(std::string_view name) {
  for (std::size_t i = 0; i < dtype_count; ++i) {
    if (dtype_names[i] == name) return static_cast<DType>(i);
  }
  for (const auto& [alias, type] : dtype_aliases) {
    if (alias == name) return type;
  }
  base::fail<InvalidArgument>("unknown element type '{}'; known are {}", name, fmt::join(dtype_names, ", "));
}

Op op_from(std::string_view name) {
  for (std::size_t i = 0; i < op_count; ++i) {
    if (op_names[i] == name) return static_cast<Op>(i);
  }
  if (name == "avg") return Op::average;
  if (name == "prod") return Op::product;
  base::fail<InvalidArgument>("unknown reduction '{}'; known are {}", name, fmt::join(op_names, ", "));
}

}  // namespace tutti
