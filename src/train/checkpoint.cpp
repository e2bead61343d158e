#include "train/checkpoint.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/host.hpp"

namespace tutti::train {
namespace {

constexpr std::string_view magic = "TUTTICKP";
constexpr std::uint32_t version = 1;
constexpr std::size_t prefix_bytes = 8 + 4 + 8;

template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(const std::string& bytes, std::size_t offset) {
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::uint32_t checksum(const char* data, std::size_t bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const unsigned char*>(data), bytes));
}

nlohmann::json parse_header(const std::string& text, const std::string& path) {
  auto header = nlohmann::json::parse(text, nullptr, false);
  base::require(!header.is_discarded() && header.contains("step") && header.contains("identity") &&
                    header.contains("arrays"),
                "checkpoint '{}': its header is not readable", path);
  return header;
}

void append(std::string& bytes, const std::vector<float>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

/// Takes arrays from the bytes behind the header, one after the other.
class ArrayReader {
 public:
  ArrayReader(const std::string& bytes, std::size_t offset, const std::string& path)
      : bytes_(bytes), offset_(offset), path_(path) {}

  /// entry: name and size.
  std::pair<std::string, std::vector<float>> take(const nlohmann::json& entry) {
    auto name = entry[0].get<std::string>();
    const auto size = entry[1].get<std::size_t>();
    base::require(size <= (bytes_.size() - 4 - offset_) / sizeof(float),
                  "checkpoint '{}': array '{}' is cut short", path_, name);
    std::vector<float> values(size);
    if (size > 0) std::memcpy(values.data(), bytes_.data() + offset_, size * sizeof(float));
    offset_ += size * sizeof(float);
    return {std::move(name), std::move(values)};
  }

 private:
  const std::string& bytes_;
  std::size_t offset_;
  const std::string& path_;
};

/// A file descriptor that closes itself.
class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}

  File(const File&) = delete;
  File& operator=(const File&) = delete;

  ~File() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace

std::string encode(const Checkpoint& checkpoint) {
  nlohmann::json header{
      {"step", checkpoint.step}, {"identity", nlohmann::json::array()}, {"arrays", nlohmann::json::array()}};
  for (const auto& [name, value] : checkpoint.identity) header["identity"].push_back({name, value});
  for (const auto& [name, values] : checkpoint.arrays) header["arrays"].push_back({name, values.size()});
  const ReducerState& unsent = checkpoint.unsent;
  if (unsent.ranks > 0) {
    auto arrays = nlohmann::json::array();
    for (const auto& [name, values] : unsent.arrays) arrays.push_back({name, values.size()});
    header["unsent"] = {{"step", unsent.step}, {"ranks", unsent.ranks}, {"arrays", std::move(arrays)}};
  }
  const std::string text = header.dump();
  std::string bytes(magic);
  append(bytes, version);
  append(bytes, static_cast<std::uint64_t>(text.size()));
  bytes += text;
  for (const auto& [name, values] : checkpoint.arrays) append(bytes, values);
  for (const auto& [name, values] : unsent.arrays) append(bytes, values);
  append(bytes, checksum(bytes.data(), bytes.size()));
  return bytes;
}

Checkpoint decode(const std::string& bytes, const std::string& path) {
  base::require(bytes.size() >= 8 && bytes.starts_with(magic),
                "'{}' is no checkpoint of tutti: it does not start with {}", path, magic);
  base::require(bytes.size() >= prefix_bytes + 4, "checkpoint '{}' is cut short: {} bytes", path,
                bytes.size());
  const auto found_version = take<std::uint32_t>(bytes, 8);
  base::require(found_version == version, "checkpoint '{}' has version {}; this program reads version {}",
                path, found_version, version);
  const auto header_bytes = take<std::uint64_t>(bytes, 12);
  base::require(header_bytes <= bytes.size() - prefix_bytes - 4,
                "checkpoint '{}' is cut short: {} bytes, its header alone has {}", path, bytes.size(),
                header_bytes);
  const auto stored = take<std::uint32_t>(bytes, bytes.size() - 4);
  const auto computed = checksum(bytes.data(), bytes.size() - 4);
  base::require(
      stored == computed,
      "checkpoint '{}' is cut short or damaged: checksum {:#010x}, expected {:#010x}; use an older one", path,
      computed, stored);
  const auto header = parse_header(bytes.substr(prefix_bytes, header_bytes), path);
  Checkpoint checkpoint{.step = header["step"].get<std::uint64_t>()};
  for (const auto& entry : header["identity"])
    checkpoint.identity.emplace_back(entry[0].get<std::string>(), entry[1].get<std::string>());
  ArrayReader reader(bytes, prefix_bytes + header_bytes, path);
  for (const auto& entry : header["arrays"]) checkpoint.arrays.push_back(reader.take(entry));
  if (header.contains("unsent")) {
    const auto& unsent = header["unsent"];
    checkpoint.unsent.step = unsent["step"].get<std::uint64_t>();
    checkpoint.unsent.ranks = unsent["ranks"].get<Rank>();
    for (const auto& entry : unsent["arrays"]) {
      auto [name, values] = reader.take(entry);
      checkpoint.unsent.arrays.push_back({std::move(name), std::move(values)});
    }
  }
  return checkpoint;
}

void write_atomically(const std::string& path, const std::string& bytes) {
  const std::string temporary = fmt::format("{}.{}.new", path, base::process_id());
  const auto give_up = [&](std::string_view what) {
    const int error = errno;
    std::remove(temporary.c_str());
    base::fail<SystemError>("cannot {} '{}': {}", what, temporary, base::errno_text(error));
  };
  {
    const File file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) give_up("create");
    for (std::size_t written = 0; written < bytes.size();) {
      const ssize_t n = write(file.get(), bytes.data() + written, bytes.size() - written);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) give_up("write");
      written += static_cast<std::size_t>(n);
    }
    if (fsync(file.get()) != 0) give_up("write");
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) give_up("rename");
}

void require_same_identity(const Checkpoint& found, const Checkpoint& expected, const std::string& path) {
  for (std::size_t i = 0; i < expected.identity.size(); ++i) {
    const auto& [name, value] = expected.identity[i];
    base::require(i < found.identity.size() && found.identity[i].first == name,
                  "checkpoint '{}' says nothing of {}", path, name);
    base::require(found.identity[i].second == value,
                  "checkpoint '{}' is of another run: its {} is {}, this run's is {}", path, name,
                  found.identity[i].second, value);
  }
}

}  // namespace tutti::train
