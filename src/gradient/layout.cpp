#include "gradient/layout.hpp"

namespace tutti::gradient {

Layout lay_out(std::span<const std::size_t> counts, std::span<const Kind> kinds,
               std::span<const std::uint32_t> order, std::size_t first_bucket_bytes,
               std::size_t bucket_bytes) {
  Layout layout;
  layout.offsets.resize(counts.size());
  layout.bucket_of.resize(counts.size());
  for (const std::size_t count : counts) layout.size += count;
  std::size_t end = layout.size;
  bool open = false;
  for (const std::uint32_t parameter : order) {
    const Kind kind = kinds[parameter];
    if (!open || layout.buckets.back().kind != kind) layout.buckets.push_back({.kind = kind});
    Bucket& bucket = layout.buckets.back();
    end -= counts[parameter];
    layout.offsets[parameter] = end;
    layout.bucket_of[parameter] = layout.buckets.size() - 1;
    bucket.first = end;
    bucket.count += counts[parameter];
    ++bucket.parameters;
    const std::size_t capacity = layout.buckets.size() == 1 ? first_bucket_bytes : bucket_bytes;
    open = kind != Kind::sparse && bucket.count * sizeof(float) < capacity;
  }
  return layout;
}

}  // namespace tutti::gradient
