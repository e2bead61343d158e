#include "data/csv.hpp"

#include <string>

#include "data/dataset.hpp"
#include "support/catch.hpp"
#include "support/folder.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::data;

namespace {

SourceOptions csv(const std::string& path) {
  SourceOptions options;
  options.source = path;
  options.standardize = false;
  return options;
}

std::string ten_rows(const std::string& tenth) {
  std::string text;
  for (int i = 0; i < 9; ++i) text += std::to_string(i) + ",1.5," + std::to_string(i % 3) + "\n";
  return text + tenth;
}

}  // namespace

TEST_CASE("numbers between commas, semicolons and tabs; headers and empty lines are skipped") {
  const Table table = parse_csv("a,b;c\n1, 2.5;-3e2\r\n\n+4\t5,6\n", "here");
  REQUIRE(table.rows == 2);
  CHECK(table.columns == 3);
  CHECK(table.row(0)[2] == -300);
  CHECK(table.row(1)[0] == 4);
  CHECK(table.lines[1] == 4);
}

TEST_CASE("what is no finite number is named with line and column") {
  CHECK_THROWS_WITH(parse_csv("1,2\n3,x\n", "'f'"),
                    ContainsSubstring("'f' line 2 column 2: 'x' is not a number"));
  CHECK_THROWS_WITH(parse_csv("1,2\n3,\n", "'f'"), ContainsSubstring("line 2 column 2: '' is not a number"));
  CHECK_THROWS_WITH(parse_csv("1,2\nnan,3\n", "'f'"), ContainsSubstring("line 2 column 1: the value is nan"));
  CHECK_THROWS_WITH(parse_csv("1,2\n3,inf\n", "'f'"), ContainsSubstring("line 2 column 2: the value is inf"));
  CHECK_THROWS_WITH(parse_csv("1,2\n3\n", "'f'"),
                    ContainsSubstring("line 2: 1 values where the first row has 2"));
}

TEST_CASE("a CSV file becomes a split data set; labels may stand anywhere") {
  const Folder folder;
  const std::string path = folder.write("d.csv", ten_rows("9,1.5,0\n"));
  auto options = csv(path);
  const Split split = load(options);
  CHECK(split.train.samples() == 8);
  CHECK(split.test.samples() == 2);
  CHECK(split.train.features == 2);
  CHECK(split.train.classes == 3);
  options.label_column = "0";
  CHECK(load(options).train.classes == 10);
  options.label_column = "first";
  options.regression = true;
  const Split regression = load(options);
  CHECK(regression.train.classes == 0);
  CHECK(regression.train.targets.size() == 8);
  options.split_seed = 2;
  CHECK(load(options).train.targets != regression.train.targets);
}

TEST_CASE("standardized features have mean 0 and variance 1 over the training part") {
  const Folder folder;
  auto options = csv(folder.write("d.csv", ten_rows("9,1.5,0\n")));
  options.standardize = true;
  const Split split = load(options);
  double sum = 0;
  double squares = 0;
  for (std::size_t i = 0; i < split.train.samples(); ++i) {
    const double x = static_cast<double>(split.train.row(i)[0]);
    sum += x;
    squares += x * x;
    CHECK(split.train.row(i)[1] == 0);  // a constant column says nothing
  }
  CHECK(sum == Approx(0).margin(1e-5));
  CHECK(squares / 8 == Approx(1));
}

TEST_CASE("bad files and options are errors that say what was expected") {
  const Folder folder;
  CHECK_THROWS_WITH(load(csv(folder.path("none.csv"))), ContainsSubstring("no such file or folder"));
  CHECK_THROWS_WITH(load(csv(folder.write("empty.csv", ""))), ContainsSubstring("0 samples"));
  CHECK_THROWS_WITH(load(csv(folder.write("header.csv", "a,b\n"))), ContainsSubstring("0 samples"));
  CHECK_THROWS_WITH(load(csv(folder.write("one.csv", "1\n2\n"))),
                    ContainsSubstring("at least one feature and a label"));
  CHECK_THROWS_WITH(load(csv(folder.write("label.csv", ten_rows("1,2,1.5\n")))),
                    ContainsSubstring("line 10: label 1.5 is out of range"));
  CHECK_THROWS_WITH(load(csv(folder.write("negative.csv", ten_rows("1,2,-1\n")))),
                    ContainsSubstring("line 10: label -1 is out of range"));
  auto options = csv(folder.write("good.csv", ten_rows("")));
  options.label_column = "7";
  CHECK_THROWS_WITH(load(options), ContainsSubstring("label column '7'"));
  options = csv(folder.path("good.csv"));
  options.test_part = 1;
  CHECK_THROWS_WITH(load(options), ContainsSubstring("test part 1"));
}
