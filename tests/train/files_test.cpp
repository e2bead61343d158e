#include "train/files.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/catch.hpp"
#include "support/folder.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::train;

namespace {

std::string read(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("lines go to their files, and a run that goes on adds to them") {
  const Folder folder;
  for (const bool goes_on : {false, true, false}) {
    RunFiles files;
    files.open(folder.path("run"), goes_on, true);
    files.metrics("m");
    files.journal("j");
    files.step(
        {.step = 3, .seconds = 0.5, .compute = 0.25, .exposed = 0.125, .gradient_bytes = 8, .sent_bytes = 4});
    files.flush();

    CHECK(read(folder.path("run/metrics.jsonl")) == (goes_on ? "m\nm\n" : "m\n"));
    CHECK(read(folder.path("run/journal.jsonl")) == (goes_on ? "j\nj\n" : "j\n"));
    CHECK_THAT(read(folder.path("run/steps.jsonl")),
               ContainsSubstring(R"({"step":3,"ms":500.0000,"compute_ms":250.0000,"exposed_ms":125.0000,)"
                                 R"("gradient_bytes":8,"sent_bytes":4})"));
  }
  RunFiles other;
  other.open(folder.path("run"), false, false);
  CHECK_FALSE(std::filesystem::exists(folder.path("run/journal.jsonl")));
  CHECK_FALSE(std::filesystem::exists(folder.path("run/steps.jsonl")));
}

TEST_CASE("what is not opened does nothing; what cannot be written is named") {
  RunFiles closed;
  closed.metrics("m");
  closed.journal("j");
  closed.step({});
  CHECK_NOTHROW(closed.flush());
  const Folder folder;
  std::ofstream(folder.path("file")) << "x";
  RunFiles files;
  CHECK_THROWS_WITH(files.open(folder.path("file/run"), false, false),
                    ContainsSubstring("cannot make the output folder"));
  RunFiles journal;
  journal.open(folder.path("run"), false, false);
  std::filesystem::create_directory(folder.path("run/journal.jsonl"));
  journal.journal("j");
  CHECK_THROWS_WITH(journal.flush(), ContainsSubstring("journal.jsonl"));
}
