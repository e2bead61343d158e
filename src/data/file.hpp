#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace tutti::data {

/// The whole content of a file; decompressed if it is in gzip format. Throws SystemError if it cannot be
/// read, InvalidArgument if the compressed data are cut short or damaged.
std::string read_file(const std::string& path);

/// Decompresses gzip data from memory; `what` names them in errors.
std::string decompress(std::span<const unsigned char> compressed, const std::string& what);

}  // namespace tutti::data
