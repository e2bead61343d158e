#include "train/checkpoint.hpp"

#include <filesystem>

#include "support/catch.hpp"
#include "support/folder.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::train;

namespace {

Checkpoint example() {
  Checkpoint checkpoint{.step = 42};
  checkpoint.identity = {{"model", "64-128-10 relu"}, {"seed", "1"}};
  checkpoint.arrays = {{"parameters", {1.5F, -0.0F, 3e-40F}}, {"velocity", {}}};
  checkpoint.unsent = {.step = 7, .ranks = 2, .arrays = {{"a", {}}, {"b", {1e-30F, 2}}}};
  return checkpoint;
}

}  // namespace

TEST_CASE("a checkpoint comes back bit for bit") {
  const Checkpoint back = decode(encode(example()), "c");
  CHECK(back.step == 42);
  CHECK(back.identity == example().identity);
  REQUIRE(back.arrays.size() == 2);
  CHECK(back.arrays[0].second == example().arrays[0].second);
  CHECK(std::signbit(back.arrays[0].second[1]));
  CHECK(back.unsent.step == 7);
  CHECK(back.unsent.ranks == 2);
  REQUIRE(back.unsent.arrays.size() == 2);
  CHECK(back.unsent.arrays[0].values.empty());
  CHECK(back.unsent.arrays[1].name == "b");
  CHECK(back.unsent.arrays[1].values == std::vector<float>{1e-30F, 2});
}

TEST_CASE("every cut and every flipped bit is found") {
  const std::string bytes = encode(example());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK_THROWS_AS(decode(bytes.substr(0, length), "c"), InvalidArgument);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    CHECK_THROWS_AS(decode(flipped, "c"), InvalidArgument);
  }
  CHECK_THROWS_WITH(decode(bytes.substr(0, bytes.size() - 3), "x.tutti"),
                    ContainsSubstring("'x.tutti' is cut short or damaged"));
  CHECK_THROWS_WITH(decode("hello, world, hello", "x"), ContainsSubstring("is no checkpoint of tutti"));
  std::string newer = bytes;
  newer[8] = 9;
  CHECK_THROWS_WITH(decode(newer, "x"), ContainsSubstring("version 9; this program reads version 1"));
}

TEST_CASE("the checkpoint of another run is refused with what differs") {
  Checkpoint other = example();
  other.identity[0].second = "64-256-10 relu";
  CHECK_NOTHROW(require_same_identity(example(), example(), "c"));
  CHECK_THROWS_WITH(require_same_identity(other, example(), "c"),
                    ContainsSubstring("its model is 64-256-10 relu, this run's is 64-128-10 relu"));
  other.identity.clear();
  CHECK_THROWS_WITH(require_same_identity(other, example(), "c"), ContainsSubstring("says nothing of model"));
}

TEST_CASE("files are replaced whole, and nothing is left where that fails") {
  const Folder folder;
  write_atomically(folder.path("c"), "first");
  write_atomically(folder.path("c"), "second");
  CHECK(std::filesystem::file_size(folder.path("c")) == 6);
  CHECK_THROWS_WITH(write_atomically(folder.path("none/c"), "x"),
                    ContainsSubstring("cannot create") && ContainsSubstring("No such file"));
  std::filesystem::create_directory(folder.path("d"));
  CHECK_THROWS_WITH(write_atomically(folder.path("d"), "x"), ContainsSubstring("cannot rename"));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  CHECK(files == 2);
}
