#include "tidy/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <sstream>

namespace tutti::tidy {
namespace {

constexpr std::size_t most_lines = 500;
constexpr std::size_t most_function_lines = 70;
constexpr std::size_t longest_line = 110;
constexpr std::size_t most_readme_lines = 30;
constexpr std::size_t most_bytes = 256 * 1024;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string complaint(const File& file, std::size_t line, std::string_view what) {
  return fmt::format("{}:{}: {}", file.path, line + 1, what);
}

bool is_code(const std::string& path) {
  return path.ends_with(".cpp") || path.ends_with(".hpp") || path.ends_with(".cu") || path.ends_with(".cuh");
}

bool is_test(const std::string& path) {
  return path.starts_with("tests/");
}

/// Characters, not bytes.
std::size_t width_of(std::string_view line) {
  return static_cast<std::size_t>(std::count_if(
      line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t\r") - first + 1));
}

/// Follows braces: which lines open something, and what.
struct Scope {
  enum class Kind { name_space, type, function, other } kind = Kind::other;
  std::size_t line = 0;
  std::string head;  ///< what stood before the brace, where the statement goes on behind it
};

/// "x = {", "x = T{": the statement goes on behind the closing brace.
bool is_initializer(const std::string& head) {
  const std::string text = trim(head);
  return text.ends_with("=") || (text.find(" = ") != std::string::npos && !text.ends_with(")"));
}

Scope::Kind kind_of(const std::string& head, const std::vector<Scope>& outer) {
  static const std::regex space(R"((^|\s)namespace\b)");
  static const std::regex type(R"((^|\s)(class|struct|union|enum)\b)");
  const bool in_function = std::any_of(outer.begin(), outer.end(), [](const Scope& s) {
    return s.kind == Scope::Kind::function || s.kind == Scope::Kind::other;
  });
  if (in_function || is_initializer(head)) return Scope::Kind::other;
  if (std::regex_search(head, space) || trim(head).starts_with("extern")) return Scope::Kind::name_space;
  const auto bracket = head.find('(');
  std::smatch match;
  if (std::regex_search(head, match, type) &&
      (bracket == std::string::npos || static_cast<std::size_t>(match.position()) < bracket) &&
      head.find(')') == std::string::npos) {
    return Scope::Kind::type;
  }
  return bracket != std::string::npos ? Scope::Kind::function : Scope::Kind::other;
}

/// Whether what stands before the brace goes on behind it: an initializer, with or without "=".
bool continues(const std::string& head, Scope::Kind kind, const std::vector<Scope>& outer) {
  static const std::regex local_static(R"(^(static|thread_local)\b)");
  if (is_initializer(head)) return true;
  if (kind != Scope::Kind::other) return false;
  const bool at_namespace = std::all_of(outer.begin(), outer.end(),
                                        [](const Scope& s) { return s.kind == Scope::Kind::name_space; });
  return at_namespace || std::regex_search(trim(head), local_static);
}

/// Calls visit(scope, line of its end) for every brace that closes, and statement(text, line, scopes) for
/// what ends in a semicolon.
template <class Visit, class Statement>
void walk(const std::string& code, const Visit& visit, const Statement& statement) {
  std::vector<Scope> scopes;
  std::string head;
  std::size_t line = 0;
  std::size_t head_line = 0;
  bool preprocessor = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '\n') {
      if (preprocessor && (i == 0 || code[i - 1] != '\\')) preprocessor = false;
      ++line;
      head += ' ';
      continue;
    }
    if (c == '#' && trim(head).empty()) preprocessor = true;
    if (preprocessor) continue;
    if (trim(head).empty()) head_line = line;
    if (c == '{') {
      const Scope::Kind kind = kind_of(head, scopes);
      scopes.push_back({kind, head_line, continues(head, kind, scopes) ? head + "{}" : ""});
      head.clear();
    } else if (c == '}') {
      head.clear();
      if (!scopes.empty()) {
        visit(scopes.back(), line);
        head = scopes.back().head;
        scopes.pop_back();
      }
    } else if (c == ';') {
      statement(head, head_line, scopes);
      head.clear();
    } else {
      head += c;
    }
  }
}

}  // namespace

std::string code_of(std::string_view text) {
  std::string code(text);
  enum class In { plain, line_comment, block_comment, string, character, raw } in = In::plain;
  std::string raw_end;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    const char next = i + 1 < code.size() ? code[i + 1] : '\0';
    if (in == In::plain) {
      const bool digit_separator =
          c == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(code[i - 1])) != 0;
      if (c == '/' && next == '/') {
        in = In::line_comment;
      } else if (c == '/' && next == '*') {
        in = In::block_comment;
      } else if (c == 'R' && next == '"') {
        in = In::raw;
        const auto open = code.find('(', i);
        raw_end = ")" + code.substr(i + 2, open - i - 2) + "\"";
        i = open;
        continue;
      } else if (c == '"') {
        in = In::string;
        continue;
      } else if (c == '\'' && !digit_separator) {
        in = In::character;
        continue;
      } else {
        continue;
      }
    } else if (in == In::raw) {
      if (code.compare(i, raw_end.size(), raw_end) == 0) {
        in = In::plain;
        i += raw_end.size() - 1;
        continue;
      }
    } else if (in == In::string || in == In::character) {
      if (c == '\\') {
        code[i] = ' ';
        if (i + 1 < code.size()) code[++i] = ' ';
        continue;
      }
      if (c == (in == In::string ? '"' : '\'')) {
        in = In::plain;
        continue;
      }
    } else if (in == In::block_comment && c == '*' && next == '/') {
      code[i] = code[i + 1] = ' ';
      ++i;
      in = In::plain;
      continue;
    } else if (in == In::line_comment && c == '\n') {
      in = In::plain;
    }
    if (code[i] != '\n') code[i] = ' ';
  }
  return code;
}

std::map<std::string, std::set<std::string>> allowed_modules(std::string_view layers_cmake) {
  std::map<std::string, std::set<std::string>> allowed;
  const std::string text(layers_cmake);
  const std::regex row(R"rx("([a-z]+):([a-z,]*)")rx");
  // Bottom first: what lies below a module is known when its row comes.
  for (auto it = std::sregex_iterator(text.begin(), text.end(), row); it != std::sregex_iterator(); ++it) {
    const std::string module = (*it)[1];
    auto& below = allowed[module];
    below.insert(module);
    std::istringstream edges((*it)[2]);
    for (std::string edge; std::getline(edges, edge, ',');) {
      const auto known = allowed.find(edge);
      if (known != allowed.end()) below.insert(known->second.begin(), known->second.end());
    }
  }
  return allowed;
}

std::string module_of(const std::string& path) {
  if (path.starts_with("src/")) return path.substr(4, path.find('/', 4) - 4);
  if (path.starts_with("cuda/")) return "cuda";
  if (path.starts_with("tools/")) return "tools";
  return {};
}

std::vector<std::string> check_sizes(const File& file) {
  std::vector<std::string> found;
  const auto lines = lines_of(file.text);
  if (file.text.size() > most_bytes)
    found.push_back(fmt::format("{}:1: {} bytes, at most {}", file.path, file.text.size(), most_bytes));
  if (file.path.starts_with("src/") && file.path.ends_with("README.md") && lines.size() > most_readme_lines) {
    found.push_back(fmt::format("{}:1: {} lines, at most {}", file.path, lines.size(), most_readme_lines));
  }
  if (!is_code(file.path)) return found;
  if (lines.size() > most_lines)
    found.push_back(fmt::format("{}:1: {} lines, at most {}", file.path, lines.size(), most_lines));
  bool formatted = true;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find("clang-format off") != std::string::npos) formatted = false;
    if (lines[i].find("clang-format on") != std::string::npos) formatted = true;
    // A string that stands alone and cannot be broken is the formatter's own exception.
    static const std::regex only_literal(R"(^\s*(R|u8)?".*)");
    const bool literal = std::regex_match(lines[i], only_literal);
    if (formatted && !literal && width_of(lines[i]) > longest_line)
      found.push_back(complaint(file, i, "line too long"));
  }
  return found;
}

std::vector<std::string> check_functions(const File& file) {
  std::vector<std::string> found;
  if (!is_code(file.path)) return found;
  walk(
      code_of(file.text),
      [&](const Scope& scope, std::size_t end) {
        if (scope.kind == Scope::Kind::function && end - scope.line + 1 > most_function_lines) {
          found.push_back(complaint(
              file, scope.line,
              fmt::format("function of {} lines, at most {}", end - scope.line + 1, most_function_lines)));
        }
      },
      [](const auto&, auto, const auto&) {});
  return found;
}

std::vector<std::string> check_includes(const File& file,
                                        const std::map<std::string, std::set<std::string>>& allowed) {
  std::vector<std::string> found;
  if (!is_code(file.path)) return found;
  const std::string module = module_of(file.path);
  const bool is_public = file.path.starts_with("include/");
  static const std::regex include(R"rx(^\s*#\s*include\s*([<"])([^>"]+)[>"])rx");
  static const std::regex standard(R"([a-z_]+)");  // the standard library has neither folders nor endings
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::smatch match;
    if (!std::regex_search(lines[i], match, include)) continue;
    const std::string target = match[2];
    const bool own = match[1] == "\"" && target.starts_with("tutti/");
    if (is_public && !own && !(match[1] == "<" && std::regex_match(target, standard)))
      found.push_back(
          complaint(file, i, "a public header includes more than the standard library: " + target));
    if (target == "mpi.h" && module != "transport" && !is_test(file.path))
      found.push_back(complaint(file, i, "only transport calls MPI"));
    if (module.empty() || match[1] == "<") continue;
    const std::string other = target.substr(0, target.find('/'));
    if (allowed.contains(other) && !allowed.at(module).contains(other)) {
      found.push_back(
          complaint(file, i, fmt::format("{} may not use {} (cmake/layers.cmake)", module, other)));
    }
  }
  return found;
}

std::vector<std::string> check_words(const File& file) {
  std::vector<std::string> found;
  const bool rules = file.path.starts_with("tests/tidy/");
  const auto everywhere = lines_of(file.text);
  static const std::regex machine_path(R"((^|[^\w.$}])/(work|home|root)/)");
  static const std::regex unfinished(R"(\b(TODO|FIXME|XXX)\b)");
  for (std::size_t i = 0; i < everywhere.size() && !rules; ++i) {
    if (std::regex_search(everywhere[i], machine_path))
      found.push_back(complaint(file, i, "names a folder of somebody's machine"));
    if (is_code(file.path) && std::regex_search(everywhere[i], unfinished))
      found.push_back(complaint(file, i, "unfinished by its own word"));
  }
  if (!is_code(file.path) || is_test(file.path)) return found;
  const auto lines = lines_of(code_of(file.text));

  const struct {
    std::regex pattern;
    std::string what;
    bool applies;
  } bans[] = {
      {std::regex(R"(\b(getenv|secure_getenv|environ)\b)"), "reads the environment outside base/options",
       file.path != "src/base/options.cpp"},
      {std::regex(R"(\bstd::(cout|cerr|clog)\b)"), "prints through streams: use fmt", true},
      {std::regex(R"(\b(f?printf|puts|fputs)\s*\()"), "prints past fmt",
       !file.path.starts_with("tools/examples/")},
      {std::regex(R"(\bfmt::print\b)"), "prints outside tools and the log",
       !file.path.starts_with("tools/") && file.path != "src/base/log.cpp"},
      {std::regex(R"((^|[^:\w])new\s+[A-Za-z_])"), "new: use a container or make_unique", true},
      {std::regex(R"((^|[^:\w=])\s*delete\s+[A-Za-z_*(\[])"), "delete: use an owner", true},
      {std::regex(R"(^\s*using namespace )"), "using namespace in a header", file.path.ends_with(".hpp")},
  };

  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const auto& ban : bans) {
      if (ban.applies && std::regex_search(lines[i], ban.pattern))
        found.push_back(complaint(file, i, ban.what));
    }
  }
  return found;
}

std::vector<std::string> check_globals(const File& file) {
  std::vector<std::string> found;
  if (!is_code(file.path) || is_test(file.path)) return found;
  static const std::regex harmless(
      R"(\b(const|constexpr|consteval|constinit|using|typedef|friend|extern|template|static_assert|return|namespace|operator|class|struct|enum|concept|requires)\b|^\s*$)");
  static const std::regex local_static(R"(^\s*(static|thread_local)\b)");
  // Parentheses make it a function, unless "=" comes before them or a value stands in them.
  static const std::regex function(R"(^[^=(]*\((?!\s*["'0-9&*{\[-]))");
  walk(
      code_of(file.text), [](const Scope&, std::size_t) {},
      [&](const std::string& statement, std::size_t line, const std::vector<Scope>& scopes) {
        const bool in_function = std::any_of(scopes.begin(), scopes.end(),
                                             [](const Scope& s) { return s.kind == Scope::Kind::function; });
        if (std::regex_search(statement, local_static)) {
          static const std::regex constant(R"(\b(const|constexpr)\b)");
          // A static member function, or one of this file: parentheses and no initializer.
          const bool is_function = !in_function && std::regex_search(statement, function);
          if (!std::regex_search(statement, constant) && !is_function)
            found.push_back(complaint(file, line, "static variable that can change"));
          return;
        }
        const bool at_namespace = std::all_of(
            scopes.begin(), scopes.end(), [](const Scope& s) { return s.kind == Scope::Kind::name_space; });
        if (!at_namespace) return;
        if (!std::regex_search(statement, harmless) && !std::regex_search(statement, function))
          found.push_back(complaint(file, line, "variable at namespace scope: " + trim(statement)));
      });
  return found;
}

std::vector<std::string> check_tested(const std::vector<File>& files, const std::vector<Covered>& covered) {
  std::vector<std::string> found;
  std::set<std::string> paths;
  std::string tests;
  for (const File& file : files) {
    paths.insert(file.path);
    if (is_test(file.path) && !file.path.starts_with("tests/tidy/")) tests += file.text;
  }
  std::set<std::string> used;
  for (const File& file : files) {
    const bool source = file.path.starts_with("src/") || file.path.starts_with("cuda/");
    if (!source || !file.path.ends_with(".cpp")) continue;
    const std::string layer = module_of(file.path);
    const std::string inner = file.path.substr(file.path.starts_with("src/") ? 4 : 0);
    const std::string header = inner.substr(0, inner.size() - 4) + ".hpp";
    const std::string stem = header.substr(header.rfind('/') + 1, header.size() - header.rfind('/') - 5);
    if (paths.contains("tests/" + layer + "/" + stem + "_test.cpp")) continue;
    if (tests.find("\"" + header + "\"") != std::string::npos) continue;
    const auto row = std::find_if(covered.begin(), covered.end(),
                                  [&](const Covered& c) { return file.path.starts_with(c.source); });
    if (row == covered.end()) {
      found.push_back(file.path + ":1: no test is named after it, includes its header or is named for it");
      continue;
    }
    used.insert(row->source);
    if (!paths.contains(row->test))
      found.push_back(row->test + ":1: should test " + file.path + ", is not there");
  }
  for (const Covered& row : covered) {
    if (!used.contains(row.source)) found.push_back(row.source + ":1: no longer needs its row");
  }
  return found;
}

std::vector<std::string> check_layer_readmes(const std::vector<File>& files) {
  std::set<std::string> layers;
  std::set<std::string> described;
  for (const File& file : files) {
    if (!file.path.starts_with("src/") || file.path.find('/', 4) == std::string::npos) continue;
    layers.insert(module_of(file.path));
    if (file.path == "src/" + module_of(file.path) + "/README.md") described.insert(module_of(file.path));
  }
  std::vector<std::string> found;
  for (const std::string& layer : layers) {
    if (!described.contains(layer)) found.push_back("src/" + layer + ":1: no README.md");
  }
  return found;
}

std::vector<std::string> check_documented(const std::vector<std::string>& names, const File& document) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (!std::regex_search(document.text, std::regex("(^|[^A-Za-z_])" + name + "([^A-Za-z_]|$)")))
      found.push_back(document.path + ":1: does not mention " + name);
  }
  return found;
}

}  // namespace tutti::tidy
