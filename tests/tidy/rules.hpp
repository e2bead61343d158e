#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

/// The house rules, as functions over text: what a reader would complain of in a review, found before it.
namespace tutti::tidy {

struct File {
  std::string path;  ///< from the project's root
  std::string text;
};

/// Which modules each module may include from, itself and all below included; from the table in
/// cmake/layers.cmake.
std::map<std::string, std::set<std::string>> allowed_modules(std::string_view layers_cmake);
/// "src/kernel/x.cpp" is in "kernel", "tools/x.cpp" in "tools"; empty for files outside of modules.
std::string module_of(const std::string& path);

/// Each returns complaints as "path:line: what".
std::vector<std::string> check_sizes(const File& file);
std::vector<std::string> check_functions(const File& file);
std::vector<std::string> check_includes(const File& file,
                                        const std::map<std::string, std::set<std::string>>& allowed);
std::vector<std::string> check_words(const File& file);
std::vector<std::string> check_globals(const File& file);

/// What is tested through something else: a source file, or all of a folder, the test that does it, and how.
struct Covered {
  std::string source;
  std::string test;
  std::string how;
};

/// Every source of src/ and cuda/ has tests/<layer>/<its name>_test.cpp, or a test that includes its header,
/// or a row of `covered`; rows that nothing needs are complaints too.
std::vector<std::string> check_tested(const std::vector<File>& files, const std::vector<Covered>& covered);
std::vector<std::string> check_layer_readmes(const std::vector<File>& files);
/// Each name stands in the document, as a word.
std::vector<std::string> check_documented(const std::vector<std::string>& names, const File& document);

/// Text without comments and the content of string literals; lines stay where they are.
std::string code_of(std::string_view text);

}  // namespace tutti::tidy
