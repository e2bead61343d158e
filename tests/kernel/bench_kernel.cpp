// How fast the kernels are, next to memcpy in the same minute: prints medians of GB/s, counting every byte
// read and written. Not a test: run by hand as bench_kernel [instruction set or best] [offset].
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "kernel/kernel.hpp"

using namespace tutti;

namespace {

struct Subject {
  std::string name;
  double bytes;  // read and written by one call
  std::function<void()> call;
  std::vector<double> rates;
};

double seconds_of(const std::function<void()>& call, int repeats) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / repeats;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

/// `size` is the bytes of the largest array of each subject.
std::vector<Subject> subjects(std::size_t size, const std::vector<std::byte*>& arrays) {
  std::vector<Subject> result;
  std::byte* const target = arrays[0];
  const auto add = [&](std::string name, std::size_t bytes, std::function<void()> call) {
    result.push_back({std::move(name), static_cast<double>(bytes), std::move(call), {}});
  };
  const std::byte* const a = arrays[1];
  const std::byte* const b = arrays[2];
  add("memcpy", 2 * size, [=] { kernel::copy(target, a, size); });
  const auto two_way = [&](DType type, Op op, std::uint64_t divisor) {
    add(fmt::format("reduce {} {}{}", name_of(type), name_of(op), divisor == 0 ? "" : " /2"), 3 * size, [=] {
      kernel::reduce(op, type, {target, type}, {a, type}, {b, type}, size / size_of(type), divisor);
    });
  };
  for (const DType type : {DType::f32, DType::f64, DType::bf16, DType::f16, DType::i8})
    two_way(type, Op::sum, 0);
  for (const DType type : {DType::f32, DType::bf16, DType::i8, DType::i32, DType::i64})
    two_way(type, Op::average, 2);
  for (const DType type : {DType::f32, DType::bf16, DType::i8, DType::i64}) two_way(type, Op::min, 0);
  for (const DType half : {DType::bf16, DType::f16}) {
    const std::size_t count = size / 4;
    add(fmt::format("reduce f32 += {}", name_of(half)), 5 * size / 2, [=] {
      kernel::reduce(Op::sum, half, {target, DType::f32}, {target, DType::f32}, {b, half}, count);
    });
    add(fmt::format("convert f32 to {}", name_of(half)), 3 * size / 2, [=] {
      kernel::convert(half, Op::sum, {target, half}, {a, DType::f32}, count);
    });
    add(fmt::format("convert {} to f32", name_of(half)), 3 * size / 2, [=] {
      kernel::convert(half, Op::sum, {target, DType::f32}, {a, half}, count);
    });
  }
  std::vector<const void*> sources;
  for (std::size_t i = 1; i < arrays.size(); ++i) sources.push_back(arrays[i]);
  for (const std::size_t p : {4U, 7U, 8U, 16U})
    for (const DType type : {DType::f32, DType::bf16})
      add(fmt::format("reduce_many {} sum p={}", name_of(type), p), (p + 1) * size,
          [=, some = std::vector<const void*>(sources.begin(),
                                              sources.begin() + static_cast<std::ptrdiff_t>(p))] {
            kernel::reduce_many(Op::sum, type, {target, type}, some, type, size / size_of(type));
          });
  add("scale f32", 2 * size, [=] {
    kernel::scale(DType::f32, Op::sum, {target, DType::f32}, {a, DType::f32}, size / 4, 0.5);
  });
  return result;
}

void run(std::size_t size, std::size_t offset) {
  // At the start of a cache line, as in an arena, or where the second argument says.
  std::vector<std::byte> storage(17 * (size + 4096) + 4096, std::byte{0x11});
  std::vector<std::byte*> arrays;
  std::byte* next = storage.data() + (4096 - reinterpret_cast<std::uintptr_t>(storage.data()) % 4096);
  for (int i = 0; i < 17; ++i) {
    arrays.push_back(next + offset);
    next += size + 448;
  }
  std::vector<Subject> all = subjects(size, arrays);
  const int repeats = std::max(1, static_cast<int>((std::size_t{1} << 22U) / size));
  for (int round = 0; round < 15; ++round)
    for (Subject& subject : all)
      subject.rates.push_back(subject.bytes / seconds_of(subject.call, repeats) / 1e9);
  fmt::print("\n{} KiB, GB/s read and written (ratio to memcpy)\n", size / 1024);
  const double base = median(all.front().rates);
  for (const Subject& subject : all)
    fmt::print("  {:<26} {:7.1f}  {:5.2f}\n", subject.name, median(subject.rates),
               median(subject.rates) / base);
}

}  // namespace

int main(int argc, char* argv[]) {
  if (argc > 1 && argv[1] != std::string("best")) kernel::force_simd_target(argv[1]);
  fmt::print("instruction set {}\n", kernel::simd_target());
  for (const std::size_t size : {std::size_t{1} << 16U, std::size_t{1} << 20U, std::size_t{1} << 26U})
    run(size, argc > 2 ? std::stoul(argv[2]) : 0);
}
