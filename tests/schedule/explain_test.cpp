#include "schedule/explain.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"

using namespace tutti;
using namespace tutti::schedule;

namespace {

std::string worked_table(const std::string& file, const std::string& marker) {
  std::ifstream stream(std::string(TUTTI_SOURCE_DIR) + "/src/schedule/algorithm/" + file);
  std::string table;
  std::string line;
  bool inside = false;
  while (std::getline(stream, line)) {
    if (line.starts_with("// " + marker)) {
      inside = true;
      continue;
    }
    if (!inside) continue;
    if (!line.starts_with("//   ")) break;
    table += line.substr(5) + "\n";
  }
  return table;
}

}  // namespace

TEST_CASE("the worked example in every algorithm's file is what explain prints") {
  const struct {
    const char* file;
    Collective collective;
    const char* name;
    Rank ranks;
  } examples[] = {
      {"ring.cpp", Collective::allreduce, "ring", 3},
      {"recursive_doubling.cpp", Collective::allreduce, "recursive_doubling", 5},
      {"halving_doubling.cpp", Collective::allreduce, "halving_doubling", 5},
      {"double_tree.cpp", Collective::allreduce, "double_tree", 5},
      {"direct.cpp", Collective::allreduce, "direct", 3},
      {"one_shot.cpp", Collective::allreduce, "one_shot", 3},
      {"bruck.cpp", Collective::allgather, "bruck", 5},
      {"broadcast.cpp", Collective::broadcast, "binomial", 6},
      {"binomial_reduce.cpp", Collective::reduce, "binomial", 6},
  };

  for (const auto& example : examples) {
    const Rank root = example.collective == Collective::reduce ? 3 : 0;
    const Generated schedule(*find(example.collective, example.name), example.ranks, root);
    std::string expected = explain(schedule);
    // Empty lines would end the comment's table.
    for (std::size_t at; (at = expected.find("\n\n")) != std::string::npos;) expected.erase(at, 1);
    INFO(example.file << " should hold:\n" << expected);
    CHECK(worked_table(example.file, "Worked out") == expected);
  }
}

TEST_CASE("the summary says what was proved") {
  const Generated ring(*find(Collective::allreduce, "ring"), 4);
  CHECK_THAT(summary_of(ring), ContainsSubstring("6 rounds") && ContainsSubstring("1.5 of the buffer") &&
                                   ContainsSubstring("another order"));
  const Generated doubling(*find(Collective::allreduce, "recursive_doubling"), 4);
  CHECK_THAT(summary_of(doubling), ContainsSubstring("canonical order"));
}

TEST_CASE("one rank's column can be asked for, and the drawing holds every message") {
  const Generated schedule(*find(Collective::allreduce, "direct"), 4);
  CHECK(explain(schedule, 2).find("rank 1") == std::string::npos);
  const std::string svg = draw_svg(schedule, "allreduce direct");
  std::size_t arrows = 0;
  for (std::size_t at = svg.find("class='message'"); at != std::string::npos;
       at = svg.find("class='message'", at + 1))
    ++arrows;
  CHECK(arrows == 24 + 3);  // and the legend
  CHECK_THAT(svg, ContainsSubstring("allreduce direct") && ContainsSubstring("rank 3") &&
                      ContainsSubstring("</svg>"));
}
