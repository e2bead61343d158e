#include <cstdlib>
#include <filesystem>
#include <string>

#include "data/dataset.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::data;

namespace {

std::string word(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    text += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xffU);
  return text;
}

std::string images(std::uint32_t count, std::uint32_t side) {
  return word(0x803) + word(count) + word(side) + word(side) +
         std::string(std::size_t{count} * side * side, '\x33');
}

std::string labels(std::uint32_t count, char label = 3) {
  return word(0x801) + word(count) + std::string(count, label);
}

/// The four files, one of them replaced.
void write_all(const Folder& folder, const std::string& name = "", const std::string& content = "") {
  folder.write("train-images-idx3-ubyte", images(6, 2));
  folder.write("train-labels-idx1-ubyte", labels(6));
  folder.write("t10k-images-idx3-ubyte", images(2, 2));
  folder.write("t10k-labels-idx1-ubyte", labels(2));
  if (!name.empty()) folder.write(name, content);
}

void rejects(const std::string& name, const std::string& content, const std::string& expected) {
  const Folder folder;
  write_all(folder, name, content);
  CHECK_THROWS_WITH(load_idx_folder(folder.path()), ContainsSubstring(expected));
}

}  // namespace

TEST_CASE("a folder of IDX files is read and scaled") {
  const Folder folder;
  write_all(folder);
  SourceOptions options;
  options.source = folder.path();
  const Split split = load(options);
  CHECK(split.train.samples() == 6);
  CHECK(split.test.samples() == 2);
  CHECK(split.train.features == 4);
  CHECK(split.test.height == 2);
  CHECK(split.test.width == 2);
  CHECK(split.train.x[0] == Approx(0x33 / 255.0));
  CHECK(split.train.labels[5] == 3);
}

TEST_CASE("every way in which IDX files can be wrong is named") {
  rejects("train-images-idx3-ubyte", images(6, 2).substr(0, 30),
          "is cut short: its header promises 40 bytes, there are 30");
  rejects("train-images-idx3-ubyte", images(6, 2) + "x", "is too long");
  rejects("train-images-idx3-ubyte", "abc", "is cut short: its header needs");
  rejects("train-images-idx3-ubyte", labels(60), "magic number 0x801 at byte 0, expected 0x803");
  rejects("train-labels-idx1-ubyte", labels(5), "has 6 images, but");
  rejects("train-labels-idx1-ubyte", labels(6, 10), "byte 8: label 10 is out of range: expected 0 to 9");
  rejects("train-images-idx3-ubyte", images(0, 2), "labels");
  rejects("t10k-images-idx3-ubyte", images(2, 3), "training images have 4 pixels, test images 9");
  const Folder folder;
  CHECK_THROWS_WITH(load_idx_folder(folder.path()),
                    ContainsSubstring("has no train-images-idx3-ubyte (nor train-images-idx3-ubyte.gz)"));
}

TEST_CASE("an IDX set without samples is refused") {
  const Folder folder;
  write_all(folder, "train-images-idx3-ubyte", images(0, 2));
  folder.write("train-labels-idx1-ubyte", labels(0));
  CHECK_THROWS_WITH(load_idx_folder(folder.path()), ContainsSubstring("0 samples"));
}

TEST_CASE("fashion-mnist is looked for where TUTTI_DATASETS says, and else where the package puts it") {
  const Folder folder;
  SourceOptions options;
  options.source = "fashion-mnist";
  REQUIRE(setenv("TUTTI_DATASETS", folder.path().c_str(), 1) == 0);
  CHECK_THROWS_WITH(load(options), ContainsSubstring(folder.path("fashion-mnist")) &&
                                       ContainsSubstring("dataset-fashion-mnist"));
  std::filesystem::create_directory(folder.path("fashion-mnist"));
  folder.write("fashion-mnist/train-images-idx3-ubyte", images(6, 3));
  folder.write("fashion-mnist/train-labels-idx1-ubyte", labels(6));
  folder.write("fashion-mnist/t10k-images-idx3-ubyte", images(2, 3));
  folder.write("fashion-mnist/t10k-labels-idx1-ubyte", labels(2));
  const Split split = load(options);
  CHECK(split.train.name == "fashion-mnist");
  CHECK(split.train.samples() == 6);
  CHECK(split.train.height == 3);
  REQUIRE(unsetenv("TUTTI_DATASETS") == 0);
}
