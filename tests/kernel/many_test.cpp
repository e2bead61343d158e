#include <cstring>

#include "base/canonical.hpp"
#include "kernel/arrays.hpp"

using namespace tutti;
using arrays::Guarded;

namespace {

using Bytes = std::vector<std::byte>;

struct Case {
  Op op;
  DType type;
  DType contribution, target;
  std::uint64_t divisor;
  std::size_t ranks, count;

  std::string text() const {
    return fmt::format("{}: {} contributions of {} into {}, divisor {}, count {}", arrays::label(type, op),
                       ranks, name_of(contribution), name_of(target), divisor, count);
  }
};

/// Each contribution is another stretch of one long row of values.
std::vector<Guarded> contributions(const Case& c) {
  static const auto rows = [] {
    std::vector<Bytes> result;
    for (const DType type : arrays::types) result.push_back(arrays::values(type, 6000, 100));
    return result;
  }();
  const Bytes& row = rows[static_cast<std::size_t>(c.contribution)];
  const std::size_t width = size_of(c.contribution);
  std::vector<Guarded> arrays;
  for (std::size_t i = 0; i < c.ranks; ++i) {
    const auto start = row.begin() + static_cast<std::ptrdiff_t>(i * 131 % 5600 * width);
    arrays.emplace_back(Bytes(start, start + static_cast<std::ptrdiff_t>(c.count * width)), i * 7 % 64);
  }
  return arrays;
}

std::vector<const void*> pointers(std::vector<Guarded>& arrays) {
  std::vector<const void*> result;
  for (Guarded& array : arrays) result.push_back(array.data());
  return result;
}

/// The canonical tree built from two-way reductions with partial results in the accumulator type.
Bytes tree(const Case& c, std::vector<Guarded>& arrays) {
  const DType wide = reference::accumulator(c.type, c.op);

  struct Node {
    DType type;
    Bytes bytes;
  };

  const auto value = [&](std::uint32_t i) { return Node{c.contribution, arrays[i].content()}; };
  const auto add = [&](const Node& a, const Node& b) {
    Node sum{wide, Bytes(c.count * size_of(wide))};
    kernel::reduce(c.op, c.type, {sum.bytes.data(), wide}, {a.bytes.data(), a.type}, {b.bytes.data(), b.type},
                   c.count);
    return sum;
  };
  const Node root = base::canonical_sum(static_cast<std::uint32_t>(c.ranks), value, add);
  Bytes result(c.count * size_of(c.target));
  kernel::convert(c.type, c.op, {result.data(), c.target}, {root.bytes.data(), root.type}, c.count,
                  c.divisor);
  return result;
}

void check(const Case& c) {
  auto arrays = contributions(c);
  const Bytes expected = tree(c, arrays);
  const auto verify = [&](const Guarded& written, const char* how) {
    const std::string difference = arrays::first_difference(c.target, expected, written.content());
    INFO(c.text() << ", " << how);
    REQUIRE(difference == "");
    REQUIRE(written.intact());
  };
  Guarded target(c.count * size_of(c.target), (c.count + c.ranks) % 64);
  kernel::reduce_many(c.op, c.type, {target.data(), c.target}, pointers(arrays), c.contribution, c.count,
                      c.divisor);
  verify(target, "out of place");
  if (c.target != c.contribution) return;
  const std::size_t which = c.count % c.ranks;
  kernel::reduce_many(c.op, c.type, {arrays[which].data(), c.target}, pointers(arrays), c.contribution,
                      c.count, c.divisor);
  verify(arrays[which], "in place");
}

template <class Body>
void every_kind(const Body& body) {
  for (const DType type : arrays::types)
    for (const Op op : arrays::ops)
      for (const DType contribution : arrays::forms(type, op))
        for (const DType target : arrays::forms(type, op))
          for (const std::uint64_t divisor : {0, 7})
            if (divisor == 0 || op == Op::average) body(Case{op, type, contribution, target, divisor, 0, 0});
}

}  // namespace

TEST_CASE("many arrays give the bits of the canonical tree of two-way reductions") {
  arrays::on_every_target([] {
    every_kind([](Case c) {
      for (c.ranks = 1; c.ranks <= 33; ++c.ranks)
        for (const std::size_t count : {5U, 61U + static_cast<unsigned>(c.ranks), 300U}) {
          c.count = count;
          check(c);
        }
    });
  });
}

TEST_CASE("every count of elements with few arrays") {
  arrays::on_every_target([] {
    every_kind([](Case c) {
      for (const std::size_t ranks : {1U, 3U, 4U, 5U, 8U})
        for (c.count = 0; c.count <= 130; c.count += 3) {
          c.ranks = ranks;
          check(c);
        }
    });
  });
}

TEST_CASE("thousands of arrays") {
  arrays::on_every_target([] {
    for (const DType type : {DType::f32, DType::bf16, DType::i8, DType::u64})
      for (const Op op : {Op::sum, Op::average, Op::max})
        for (const std::size_t ranks : {100U, 1000U, 4097U})
          check({op, type, type, type, op == Op::average ? ranks : 0U, ranks, 37});
  });
}

TEST_CASE("an average of 4096 binary16 values survives a sum beyond their range") {
  arrays::on_every_target([] {
    const std::uint16_t hundred = reference::nearest_f16(100.0);
    const std::vector<std::uint16_t> array(70, hundred);
    const std::vector<const void*> ranks(4096, array.data());
    std::vector<std::uint16_t> found(array.size());
    kernel::reduce_many(Op::average, DType::f16, {found.data(), DType::f16}, ranks, DType::f16, array.size(),
                        4096);
    CHECK(found == array);
    kernel::reduce_many(Op::sum, DType::f16, {found.data(), DType::f16}, ranks, DType::f16, array.size());
    CHECK(found == std::vector<std::uint16_t>(array.size(), 0x7c00));
  });
}
