#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "schedule/schedule.hpp"
#include "support/catch.hpp"
#include "tidy/rules.hpp"

using namespace tutti::tidy;
namespace fs = std::filesystem;

namespace {

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Every file of the project that a person wrote.
std::vector<File> project() {
  const fs::path root(TUTTI_SOURCE_DIR);
  std::vector<File> files;
  for (const char* top : {"include", "src", "cuda", "tools", "tests", "scripts", "cmake", ".ci"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.is_regular_file())
        files.push_back({fs::relative(entry.path(), root).string(), read(entry.path())});
    }
  }
  for (const auto& entry : fs::directory_iterator(root)) {
    // In a second worktree .git is a file, and git's own.
    if (entry.is_regular_file() && entry.path().filename() != ".git")
      files.push_back({entry.path().filename().string(), read(entry.path())});
  }
  return files;
}

void complain(const std::vector<std::string>& found) {
  std::string all;
  for (const auto& line : found) all += line + "\n";
  INFO(all);
  CHECK(found.empty());
}

template <class Check>
void run(const Check& check) {
  for (const File& file : project()) complain(check(file));
}

bool finds(const std::vector<std::string>& found, const std::string& what) {
  return std::any_of(found.begin(), found.end(),
                     [&](const std::string& line) { return line.find(what) != std::string::npos; });
}

}  // namespace

TEST_CASE("files, functions and lines are short") {
  run(check_sizes);
  run(check_functions);
}

TEST_CASE("includes keep to the layers") {
  const auto allowed = allowed_modules(read(fs::path(TUTTI_SOURCE_DIR) / "cmake/layers.cmake"));
  CHECK(allowed.size() >= 10);
  run([&](const File& file) { return check_includes(file, allowed); });
}

TEST_CASE("no banned words, no state at namespace scope") {
  run(check_words);
  run(check_globals);
}

TEST_CASE("every layer has a README, every source a test") {
  const auto files = project();
  CHECK(files.size() > 100);
  complain(check_layer_readmes(files));
  const std::string conformance = "tests/conformance/cases.cpp";
  const std::string simd = "tests/kernel/reduce_test.cpp";
  complain(check_tested(
      files,
      {
          {"src/engine/plan.cpp", conformance, "every algorithm, type and size"},
          {"src/engine/runner.cpp", conformance, "every algorithm, type and size"},
          {"src/engine/schedule_engine.cpp", conformance, "named and chosen algorithms"},
          {"src/engine/request.cpp", "tests/engine/overlap_test.cpp", "buffers that overlap"},
          {"src/transport/mpi_native.cpp", "tests/mpi/conformance_test.cpp", "needs MPI"},
          {"src/engine/library_engine.cpp", "tests/mpi/conformance_test.cpp", "needs MPI"},
          {"src/engine/messages.cpp", "tests/exchange/coded_test.cpp", "the messages of coded collectives"},
          {"src/exchange/", "tests/exchange/coded_test.cpp", "every codec, by each of the ways"},
          {"src/engine/communicator_layout.cpp", "tests/engine/hierarchy_test.cpp", "layouts"},
          {"src/engine/choice.cpp", "tests/engine/profile_test.cpp", "choices as text"},
          {"src/engine/predict.cpp", "tests/bench/tune_test.cpp", "predictions beside measurements"},
          {"src/bench/links.cpp", "tests/bench/tune_test.cpp", "what is measured, and where"},
          {"src/bench/plan.cpp", "tests/tools/tune.sh", "explain under mpirun"},
          {"src/transport/mpi_transport.cpp", "tests/mpi/mpi_transport_test.cpp", "needs MPI"},
          {"src/engine/session.cpp", "tests/mpi/session_test.cpp", "needs MPI"},
          {"src/engine/library.cpp", "tests/consumer/run.sh", "the shared library"},
          {"src/kernel/simd", simd, "each instruction set in turn, against a scalar reference"},
          {"src/model/activation.cpp", "tests/model/network_test.cpp", "gradients against differences"},
          {"src/model/dense.cpp", "tests/model/network_test.cpp", "gradients against differences"},
          {"src/model/convolution.cpp", "tests/model/network_test.cpp", "gradients against differences"},
          {"src/model/pooling.cpp", "tests/model/network_test.cpp", "gradients against differences"},
          {"src/compress/codec/", "tests/compress/codec_test.cpp", "every row of the table"},
          {"src/schedule/algorithm/", "tests/schedule/check_test.cpp", "every row of the table"},
          {"src/data/source.cpp", "tests/train/bad_input.sh", "files, folders and what is neither"},
      }));
}

TEST_CASE("every algorithm is in the documentation") {
  std::vector<std::string> names;
  for (const auto& algorithm : tutti::schedule::algorithms()) names.emplace_back(algorithm.name);
  CHECK(names.size() >= 5);
  complain(
      check_documented(names, {"ARCHITECTURE.md", read(fs::path(TUTTI_SOURCE_DIR) / "ARCHITECTURE.md")}));
}

TEST_CASE("each rule finds what it is there for") {
  const auto allowed =
      allowed_modules("\"base:\"\n\"kernel:base\"\n\"schedule:base\"\n\"engine:schedule,kernel\"\n");
  CHECK(allowed.at("engine").contains("base"));
  CHECK(finds(check_includes({"src/kernel/x.cpp", "#include \"schedule/schedule.hpp\"\n"}, allowed),
              "x.cpp:1: kernel may not use schedule"));
  CHECK(
      check_includes(
          {"src/engine/x.cpp", "#include \"schedule/schedule.hpp\"\n#include \"base/error.hpp\"\n"}, allowed)
          .empty());
  for (const char* other :
       {"<mpi.h>", "<sys/types.h>", "<hwy/base.h>", "<fmt/format.h>", "\"base/error.hpp\""})
    CHECK(finds(check_includes({"include/tutti/x.hpp", std::string("#include ") + other}, allowed),
                "public header"));
  CHECK(check_includes({"include/tutti/x.hpp", "#include <span>\n#include \"tutti/types.hpp\""}, allowed)
            .empty());
  CHECK(
      finds(check_includes({"src/engine/x.cpp", "#include <mpi.h>\n"}, allowed), "only transport calls MPI"));

  std::string lines;
  for (int i = 0; i < 501; ++i) lines += "int x();\n";
  CHECK(finds(check_sizes({"src/base/x.cpp", lines}), "501 lines"));
  CHECK(finds(check_sizes({"src/base/x.cpp", std::string(111, 'x')}), "line too long"));
  CHECK(finds(check_sizes({"src/base/x.cpp", "f(\"x\", " + std::string(111, 'x')}), "line too long"));
  CHECK(check_sizes({"src/base/x.cpp", "    \"" + std::string(111, 'x') + "\","}).empty());
  CHECK(finds(check_sizes({"src/base/README.md", std::string(31, '\n')}), "31 lines"));
  CHECK(finds(check_sizes({"tools/data/big", std::string(300000, 'x')}), "300000 bytes"));

  std::string body = "namespace a {\nclass B {\n  void f(int x) {\n";
  for (int i = 0; i < 75; ++i) body += "    g(x);\n";
  CHECK(finds(check_functions({"src/base/x.cpp", body + "  }\n};\n}\n"}), "x.cpp:3: function of 77 lines"));

  const auto word = [](const std::string& path, const std::string& text, const std::string& what) {
    return finds(check_words({path, text}), what);
  };
  CHECK(word("src/base/x.cpp", "auto a = std::getenv(\"A\");", "environment"));
  CHECK_FALSE(word("src/base/options.cpp", "auto a = std::getenv(\"A\");", "environment"));
  CHECK(word("src/base/x.cpp", "std::cout << 1;", "streams"));
  CHECK(word("src/base/x.cpp", "  printf(\"\");", "past fmt"));
  CHECK(word("src/base/x.cpp", "fmt::print(\"\");", "outside tools"));
  CHECK(word("src/base/x.cpp", "int* p = new int;", "new:"));
  CHECK(word("src/base/x.cpp", "  delete p;", "delete:"));
  CHECK_FALSE(word("src/base/x.cpp", "A(const A&) = delete;  // a new thing", "new:"));
  CHECK(word("src/base/x.hpp", "using namespace std;", "using namespace"));
  CHECK(word("README.md", "see /home/me/x", "machine"));
  CHECK(word("src/base/x.cpp", "// TODO later", "unfinished"));

  const auto global = [](const std::string& text) {
    return !check_globals({"src/base/x.cpp", text}).empty();
  };
  CHECK(global("int counter = 0;"));
  CHECK(global("static int counter;"));
  CHECK(global("void f() { static int calls = 0; ++calls; }"));
  CHECK(global("void f() { thread_local int calls = 0; ++calls; }"));
  CHECK(global("void f() { static int calls{0}; ++calls; }"));
  CHECK(global("std::atomic<int> counter{0};"));
  CHECK(global("namespace a {\nstd::mutex guard;\n}"));
  CHECK(global("int first = start();"));
  CHECK(global("std::vector<int> cache(10);"));
  CHECK(global("std::vector<int> cache{1, 2};"));
  CHECK(global("struct A { int x; } instance;"));
  CHECK(global("inline int shared = 2;"));
  CHECK_FALSE(global("int f(int a = 1);\nvoid g();\nconst std::vector<int> table{1, 2};"));
  CHECK_FALSE(global("void f() { static const auto table = make(); static const int other{1}; }"));
  CHECK_FALSE(global("A::A(int x) : x_{x} { y(); }\nvoid f() { if (a) { b(); } A c{1}; }"));
  CHECK_FALSE(
      global("constexpr int limit = 3;\nvoid f() { static const int table = 1; int x = 0; }\nstruct A { int "
             "member = 0; };"));
}

TEST_CASE("the rules over the whole project find what they are there for") {
  const File source{"src/base/x.cpp", ""};
  CHECK(finds(check_tested({source}, {}), "src/base/x.cpp:1: no test"));
  CHECK(finds(check_tested({source, {"tests/base/y_test.cpp", "#include \"base/y.hpp\""}}, {}), "no test"));
  CHECK(check_tested({source, {"tests/base/x_test.cpp", ""}}, {}).empty());
  CHECK(check_tested({source, {"tests/other/y_test.cpp", "#include \"base/x.hpp\""}}, {}).empty());
  CHECK(finds(check_tested({source}, {{"src/base/", "tests/gone_test.cpp", ""}}), "gone_test.cpp:1: should"));
  CHECK(finds(check_tested({}, {{"src/base/", "tests/base/x_test.cpp", ""}}), "no longer needs"));
  CHECK(finds(check_layer_readmes({source}), "src/base:1: no README.md"));
  CHECK(check_layer_readmes({source, {"src/base/README.md", ""}}).empty());
  CHECK(finds(check_documented({"ring"}, {"x.md", "bring strings"}), "does not mention ring"));
  CHECK(check_documented({"ring"}, {"x.md", "the ring, first"}).empty());
}
