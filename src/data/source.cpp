#include <filesystem>
#include <string>

#include "base/error.hpp"
#include "base/options.hpp"
#include "data/dataset.hpp"

namespace tutti::data {

Split load_fashion_mnist() {
  constexpr const char* installed = "/usr/share/datasets/fashion-mnist";
  const auto own = base::environment("TUTTI_DATASETS");
  const std::string folder = own ? *own + "/fashion-mnist" : installed;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    base::fail<SystemError>(
        "data fashion-mnist: there is no folder '{}'; install Debian's dataset-fashion-mnist (scripts/setup "
        "--data), or set TUTTI_DATASETS to the folder that has fashion-mnist with its four IDX files",
        folder);
  return load_idx_folder(folder);
}

Split load(const SourceOptions& options) {
  base::require(options.test_part > 0 && options.test_part < 1,
                "test part {}: expected more than 0 and less than 1", options.test_part);
  if (options.source == "digits") {
    base::require(!options.regression, "the built-in digits have classes, no real targets");
    return load_digits(options.split_seed);
  }
  if (options.source == "fashion-mnist") return load_fashion_mnist();
  std::error_code error;
  if (std::filesystem::is_directory(options.source, error)) return load_idx_folder(options.source);
  if (std::filesystem::exists(options.source, error)) return load_csv(options);
  base::fail<SystemError>(
      "data '{}': no such file or folder; expected digits (built in), fashion-mnist (installed), a folder "
      "with IDX files, or a CSV file",
      options.source);
}

}  // namespace tutti::data
