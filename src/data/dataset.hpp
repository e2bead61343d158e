#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tutti::data {

/// Samples as rows of features, with a class or, for regression, a target each.
struct Dataset {
  std::string name;
  std::size_t features = 0;
  std::size_t classes = 0;  ///< 0: regression
  std::size_t height = 0;   ///< of images; 0: samples are none
  std::size_t width = 0;
  std::vector<float> x;  ///< samples × features
  std::vector<std::uint32_t> labels;
  std::vector<float> targets;  ///< regression only

  std::size_t samples() const { return features == 0 ? 0 : x.size() / features; }

  std::span<const float> row(std::size_t sample) const {
    return std::span(x).subspan(sample * features, features);
  }
};

struct Split {
  Dataset train;
  Dataset test;
};

/// How to read what the user named.
struct SourceOptions {
  std::string source = "digits";      ///< "digits", "fashion-mnist", a folder with IDX files, or a CSV file
  std::uint64_t split_seed = 1;       ///< of the split where the source has none of its own
  double test_part = 0.2;             ///< CSV: part of the rows that is held out
  std::string label_column = "last";  ///< CSV: "first", "last" or a 0-based number
  bool regression = false;            ///< CSV: the label column holds real targets
  bool standardize = true;            ///< CSV: features to mean 0 and variance 1, by the training part
};

/// Reads the data set. Throws SystemError or InvalidArgument that name the file, the place in it, what was
/// expected and what was found.
Split load(const SourceOptions& options);

/// The handwritten digits that are built in: UCI "Optical Recognition of Handwritten Digits", Alpaydin and
/// Kaynak, CC BY 4.0, as Debian's python3-sklearn ships them: 1797 images of 8 × 8, split 1437 / 360 by the
/// seed; pixels scaled to 0..1.
Split load_digits(std::uint64_t split_seed);
/// MNIST as published, also with names in .gz: train-images-idx3-ubyte and so on. Pixels scaled to 0..1.
Split load_idx_folder(const std::string& folder);
/// Fashion-MNIST (Xiao, Rasul, Vollgraf 2017; MIT licence) where Debian's package dataset-fashion-mnist puts
/// it, or else in the folder `fashion-mnist` under that of TUTTI_DATASETS. Throws SystemError that says how
/// to get it.
Split load_fashion_mnist();
/// Numbers, one sample a line; a first line that is no number is a header.
Split load_csv(const SourceOptions& options);

}  // namespace tutti::data
