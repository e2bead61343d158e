#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace tutti {

/// Compares text that a user sees with the committed file tests/approval/baseline/<name>. Returns what to
/// print if it differs, with the first line that does; empty if it is the same. The new text is then beside
/// the test's build as <name>.received: read it, and copy it over the baseline if it is right.
inline std::string approve(const std::string& name, const std::string& received) {
  const std::string path = std::string(TUTTI_SOURCE_DIR) + "/tests/approval/baseline/" + name;
  std::ifstream file(path, std::ios::binary);
  const std::string approved((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (approved == received) return {};
  std::ofstream(name + ".received", std::ios::binary) << received;
  std::size_t line = 1;
  std::size_t start = 0;
  for (std::size_t i = 0; i < std::min(approved.size(), received.size()) && approved[i] == received[i]; ++i) {
    if (approved[i] == '\n') {
      ++line;
      start = i + 1;
    }
  }
  const auto line_of = [&](const std::string& text) {
    return start >= text.size() ? std::string("(end)") : text.substr(start, text.find('\n', start) - start);
  };
  return name + " line " + std::to_string(line) + "\n  approved: " + line_of(approved) +
         "\n  received: " + line_of(received) + "\n  if the new text is right: cp " +
         (std::filesystem::current_path() / (name + ".received")).string() + " " + path + "\n";
}

}  // namespace tutti
