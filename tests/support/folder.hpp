#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tutti {

/// A folder of its own for a test; goes with the object.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tutti-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  ~Folder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }

  std::string path(const std::string& name = "") const { return name.empty() ? path_ : path_ + "/" + name; }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

 private:
  std::string path_;
};

}  // namespace tutti
