#include <filesystem>

#include "base/error.hpp"
#include "data/dataset.hpp"

namespace tutti::data {

Split load(const SourceOptions& options) {
  base::require(options.test_part > 0 && options.test_part < 1,
                "test part {}: expected more than 0 and less than 1", options.test_part);
  if (options.source == "digits") {
    base::require(!options.regression, "the built-in digits have classes, no real targets");
    return load_digits(options.split_seed);
  }
  std::error_code error;
  if (std::filesystem::is_directory(options.source, error)) return load_idx_folder(options.source);
  if (std::filesystem::exists(options.source, error)) return load_csv(options);
  base::fail<SystemError>(
      "data '{}': no such file or folder; expected digits (built in), a folder with IDX files, or a CSV file",
      options.source);
}

}  // namespace tutti::data
