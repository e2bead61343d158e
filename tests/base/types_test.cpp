#include "tutti/types.hpp"

#include "support/catch.hpp"
#include "tutti/error.hpp"

using namespace tutti;

TEST_CASE("names of types and reductions go both ways") {
  for (std::size_t i = 0; i < dtype_count; ++i)
    CHECK(dtype_from(name_of(static_cast<DType>(i))) == static_cast<DType>(i));
  for (std::size_t i = 0; i < op_count; ++i)
    CHECK(op_from(name_of(static_cast<Op>(i))) == static_cast<Op>(i));
  CHECK(dtype_from("float") == DType::f32);
  CHECK(op_from("avg") == Op::average);
  CHECK_THROWS_WITH(dtype_from("f8"), ContainsSubstring("'f8'") && ContainsSubstring("bf16"));
  CHECK_THROWS_WITH(op_from("mean"), ContainsSubstring("average"));
}

TEST_CASE("C++ types map to element types by size and kind") {
  STATIC_REQUIRE(dtype_of<float> == DType::f32);
  STATIC_REQUIRE(dtype_of<const double> == DType::f64);
  STATIC_REQUIRE(dtype_of<long> == DType::i64);
  STATIC_REQUIRE(dtype_of<long long> == DType::i64);
  STATIC_REQUIRE(dtype_of<unsigned char> == DType::u8);
  STATIC_REQUIRE(dtype_of<bfloat16> == DType::bf16);
}
