#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tutti/reducer.hpp"

namespace tutti::train {

/// What training goes on from. The file: 8 bytes "TUTTICKP", version (u32), length of the header (u64),
/// header (JSON), the arrays one after the other (f32), CRC-32 of all before it (u32); all little-endian.
struct Checkpoint {
  std::uint64_t step = 0;
  /// What must be the same in the run that goes on: names and values, as text, in a fixed order.
  std::vector<std::pair<std::string, std::string>> identity;
  /// Parameters and optimizer state.
  std::vector<std::pair<std::string, std::vector<float>>> arrays;
  /// What the codec has not sent yet; of 0 ranks: there was no codec.
  ReducerState unsent = {};
};

std::string encode(const Checkpoint& checkpoint);
/// Throws InvalidArgument that names `path` if the bytes are cut short, damaged, of another kind or of
/// another version.
Checkpoint decode(const std::string& bytes, const std::string& path);

/// Writes to a new file in the same folder, then renames it: a reader sees the old file or the new one,
/// whole. Throws SystemError.
void write_atomically(const std::string& path, const std::string& bytes);

/// Throws InvalidArgument that names `path` and the first thing that is not the same.
void require_same_identity(const Checkpoint& found, const Checkpoint& expected, const std::string& path);

}  // namespace tutti::train
