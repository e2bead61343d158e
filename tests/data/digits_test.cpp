#include <algorithm>

#include "data/dataset.hpp"
#include "data/file.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::data;

TEST_CASE("the built-in digits are complete, scaled and split by the seed") {
  const Split split = load({});
  CHECK(split.train.samples() == 1437);
  CHECK(split.test.samples() == 360);
  CHECK(split.train.features == 64);
  CHECK(split.train.height == 8);
  CHECK(split.train.width == 8);
  CHECK(split.train.classes == 10);
  std::vector<std::size_t> count(10, 0);
  for (const Dataset* part : {&split.train, &split.test}) {
    CHECK(*std::min_element(part->x.begin(), part->x.end()) == 0);
    CHECK(*std::max_element(part->x.begin(), part->x.end()) == 1);
    for (const auto label : part->labels) ++count.at(label);
  }
  // As published for the 1797 images.
  CHECK(count == std::vector<std::size_t>{178, 182, 177, 183, 181, 182, 181, 179, 174, 180});
  CHECK(load({}).train.x == split.train.x);
  SourceOptions other;
  other.split_seed = 2;
  CHECK(load(other).train.labels != split.train.labels);
}

TEST_CASE("compressed files cut short or damaged are found out") {
  const Folder folder;
  const std::string whole = read_file(TUTTI_SOURCE_DIR "/tools/data/digits.csv.gz");
  CHECK(whole.size() == 264712);
  std::ifstream file(TUTTI_SOURCE_DIR "/tools/data/digits.csv.gz", std::ios::binary);
  const std::string compressed((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  CHECK_THROWS_WITH(read_file(folder.write("short.gz", compressed.substr(0, 5000))),
                    ContainsSubstring("short.gz") && ContainsSubstring("cut short"));
  std::string damaged = compressed;
  damaged[20000] = static_cast<char>(damaged[20000] ^ 0x10);
  CHECK_THROWS_WITH(read_file(folder.write("damaged.gz", damaged)), ContainsSubstring("damaged"));
  CHECK_THROWS_WITH(read_file(folder.path("none")), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(read_file(folder.path()), ContainsSubstring("is a folder"));
}
