#include "data/file.hpp"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/error.hpp"

namespace tutti::data {
namespace {

struct EndInflate {
  void operator()(z_stream* stream) const { inflateEnd(stream); }
};

}  // namespace

std::string decompress(std::span<const unsigned char> compressed, const std::string& what) {
  z_stream stream{};
  // 16: expect the gzip header and check its checksum.
  base::require(inflateInit2(&stream, 15 + 16) == Z_OK, "{}: zlib does not start", what);
  const std::unique_ptr<z_stream, EndInflate> guard(&stream);
  stream.next_in = const_cast<unsigned char*>(compressed.data());  // zlib reads it only
  stream.avail_in = static_cast<unsigned>(compressed.size());
  std::string content;
  std::array<unsigned char, 65536> chunk{};
  int status = Z_OK;
  while (status == Z_OK) {
    stream.next_out = chunk.data();
    stream.avail_out = chunk.size();
    status = inflate(&stream, Z_NO_FLUSH);
    content.append(reinterpret_cast<const char*>(chunk.data()), chunk.size() - stream.avail_out);
    if (status == Z_OK && stream.avail_in == 0 && stream.avail_out > 0) status = Z_BUF_ERROR;
  }
  base::require(status == Z_STREAM_END,
                "{}: the compressed data are {} after {} decompressed bytes; fetch the file again", what,
                status == Z_BUF_ERROR ? "cut short" : "damaged", content.size());
  return content;
}

std::string read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    base::fail<SystemError>("'{}' is a folder, not a file", path);
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) base::fail<SystemError>("cannot open '{}': {}", path, base::errno_text(errno));
  std::string content((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (file.bad()) base::fail<SystemError>("cannot read '{}': {}", path, base::errno_text(errno));
  const bool gzip = content.size() >= 2 && content[0] == '\x1f' && content[1] == '\x8b';
  if (!gzip) return content;
  return decompress({reinterpret_cast<const unsigned char*>(content.data()), content.size()},
                    fmt::format("'{}'", path));
}

}  // namespace tutti::data
