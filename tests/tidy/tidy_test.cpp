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
    if (entry.is_regular_file()) files.push_back({entry.path().filename().string(), read(entry.path())});
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

TEST_CASE("every layer has a README, every source with logic a test that includes or names it") {
  const auto files = project();
  std::string tests;
  for (const File& file : files) {
    if (file.path.starts_with("tests/")) tests += file.text;
  }
  // What has no logic of its own, or runs only as a whole program (tests/train/*.sh, tests/consumer,
  // tests/mpi run those).
  const std::vector<std::string> exempt{"src/engine/library.cpp", "src/engine/session.cpp",
                                        "src/transport/mpi.cpp",  "src/base/host.cpp",
                                        "src/base/log.cpp",       "src/base/error.cpp"};
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || !file.path.ends_with(".cpp")) continue;
    if (std::find(exempt.begin(), exempt.end(), file.path) != exempt.end()) continue;
    const std::string layer = module_of(file.path);
    INFO(file.path << " has no test");
    CHECK(fs::exists(fs::path(TUTTI_SOURCE_DIR) / "tests" / layer));
    CHECK(tests.find("\"" + layer + "/") != std::string::npos);
  }
  for (const auto& entry : fs::directory_iterator(fs::path(TUTTI_SOURCE_DIR) / "src")) {
    if (!entry.is_directory()) continue;
    INFO(entry.path().string());
    CHECK(fs::exists(entry.path() / "README.md"));
  }
}

TEST_CASE("every algorithm is in the documentation") {
  const std::string architecture = read(fs::path(TUTTI_SOURCE_DIR) / "ARCHITECTURE.md");
  for (const auto& algorithm : tutti::schedule::algorithms()) {
    INFO(algorithm.name);
    CHECK(architecture.find(std::string(algorithm.name)) != std::string::npos);
  }
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
  CHECK(finds(check_includes({"include/tutti/x.hpp", "#include <mpi.h>\n"}, allowed), "public header"));
  CHECK(
      finds(check_includes({"src/engine/x.cpp", "#include <mpi.h>\n"}, allowed), "only transport calls MPI"));

  std::string lines;
  for (int i = 0; i < 501; ++i) lines += "int x();\n";
  CHECK(finds(check_sizes({"src/base/x.cpp", lines}), "501 lines"));
  CHECK(finds(check_sizes({"src/base/x.cpp", std::string(111, 'x')}), "line too long"));
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
  CHECK_FALSE(
      global("constexpr int limit = 3;\nvoid f() { static const int table = 1; int x = 0; }\nstruct A { int "
             "member = 0; };"));
}
