#include <array>
#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "data/file.hpp"

namespace tutti::data {
namespace {

constexpr std::uint32_t image_magic = 0x803;  ///< unsigned bytes, three dimensions
constexpr std::uint32_t label_magic = 0x801;

std::string find_file(const std::string& folder, const std::string& name) {
  for (const std::string& candidate : {folder + "/" + name, folder + "/" + name + ".gz"}) {
    if (std::filesystem::exists(candidate)) return candidate;
  }
  base::fail<SystemError>("'{}' has no {} (nor {}.gz): expected the four IDX files of MNIST or Fashion-MNIST",
                          folder, name, name);
}

std::uint32_t word_at(const std::string& content, std::size_t offset, const std::string& path) {
  base::require(content.size() >= offset + 4, "'{}' is cut short: its header needs {} bytes, there are {}",
                path, offset + 4, content.size());
  std::uint32_t word = 0;
  for (std::size_t i = 0; i < 4; ++i) word = word << 8U | static_cast<unsigned char>(content[offset + i]);
  return word;
}

void require_header(const std::string& content, std::uint32_t magic, std::size_t bytes,
                    const std::string& path) {
  const std::uint32_t found = word_at(content, 0, path);
  base::require(
      found == magic,
      "'{}' does not start like an IDX file of this kind: magic number {:#x} at byte 0, expected {:#x}", path,
      found, magic);
  base::require(content.size() == bytes, "'{}' {}: its header promises {} bytes, there are {}", path,
                content.size() < bytes ? "is cut short" : "is too long", bytes, content.size());
}

Dataset load_part(const std::string& folder, const std::string& prefix) {
  const std::string image_path = find_file(folder, prefix + "-images-idx3-ubyte");
  const std::string label_path = find_file(folder, prefix + "-labels-idx1-ubyte");
  const std::string images = read_file(image_path);
  const std::string labels = read_file(label_path);
  const std::size_t count = word_at(images, 4, image_path);
  const std::size_t height = word_at(images, 8, image_path);
  const std::size_t width = word_at(images, 12, image_path);
  const std::size_t pixels = height * width;
  require_header(images, image_magic, 16 + count * pixels, image_path);
  const std::size_t label_count = word_at(labels, 4, label_path);
  require_header(labels, label_magic, 8 + label_count, label_path);
  base::require(count == label_count, "'{}' has {} images, but '{}' has {} labels", image_path, count,
                label_path, label_count);
  base::require(count > 0 && pixels > 0, "'{}' has {} samples of {} pixels", image_path, count, pixels);
  Dataset part{.name = std::filesystem::path(folder).filename().string(),
               .features = pixels,
               .classes = 10,
               .height = height,
               .width = width};
  if (part.name.empty()) part.name = folder;
  part.x.reserve(count * pixels);
  for (std::size_t i = 0; i < count * pixels; ++i)
    part.x.push_back(static_cast<float>(static_cast<unsigned char>(images[16 + i])) / 255.0F);
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<unsigned char>(labels[8 + i]);
    base::require(label < part.classes, "'{}' byte {}: label {} is out of range: expected 0 to {}",
                  label_path, 8 + i, label, part.classes - 1);
    part.labels.push_back(label);
  }
  return part;
}

}  // namespace

Split load_idx_folder(const std::string& folder) {
  Split split{load_part(folder, "train"), load_part(folder, "t10k")};
  base::require(split.train.features == split.test.features,
                "'{}': training images have {} pixels, test images {}", folder, split.train.features,
                split.test.features);
  return split;
}

}  // namespace tutti::data
