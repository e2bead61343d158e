#include "schedule/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace tutti::schedule {
namespace {

std::string text_of(Block blocks) {
  return blocks.size() == 1 ? fmt::format("[{}]", blocks.first)
                            : fmt::format("[{}-{}]", blocks.first, blocks.last - 1);
}

std::string text_of(const Step& step) {
  constexpr std::string_view marks = "><+~=";
  const char mark = marks[static_cast<std::size_t>(step.kind)];
  if (step.kind == Kind::reduce_slots) return fmt::format("{}{}", mark, text_of(step.blocks));
  return fmt::format("{}{}{}", mark, step.peer, text_of(step.blocks));
}

std::uint32_t most_rounds(const Schedule& schedule, std::uint32_t strand) {
  std::uint32_t most = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) most = std::max(most, schedule.rounds(rank, strand));
  return most;
}

std::vector<Step> steps_of(const Schedule& schedule, Rank rank, std::uint32_t strand, std::uint32_t round) {
  if (round >= schedule.rounds(rank, strand)) return {};
  Sink sink;
  schedule.emit(rank, strand, round, sink);
  return {sink.steps().begin(), sink.steps().end()};
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string table_of_strand(const Schedule& schedule, std::uint32_t strand, const std::vector<Rank>& ranks) {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> widths;
  for (const Rank rank : ranks) widths.push_back(fmt::format("rank {}", rank).size());
  for (std::uint32_t round = 0; round < most_rounds(schedule, strand); ++round) {
    auto& row = cells.emplace_back();
    for (std::size_t column = 0; column < ranks.size(); ++column) {
      std::string cell;
      for (const Step& step : steps_of(schedule, ranks[column], strand, round))
        cell += (cell.empty() ? "" : " ") + text_of(step);
      widths[column] = std::max(widths[column], cell.size());
      row.push_back(std::move(cell));
    }
  }
  std::string line = "round";
  for (std::size_t column = 0; column < ranks.size(); ++column)
    line += fmt::format("  {:<{}}", fmt::format("rank {}", ranks[column]), widths[column]);
  std::string text = without_trailing_spaces(line);
  for (std::size_t round = 0; round < cells.size(); ++round) {
    line = fmt::format("{:>5}", round);
    for (std::size_t column = 0; column < ranks.size(); ++column)
      line += fmt::format("  {:<{}}", cells[round][column], widths[column]);
    text += without_trailing_spaces(line);
  }
  return text;
}

// ---- drawing
// ---------------------------------------------------------------------------------------------------------

constexpr int column_width = 90;
constexpr int row_height = 70;
constexpr int left_margin = 80;
constexpr int top_margin = 110;

std::string_view colour_of(Kind receive) {
  if (receive == Kind::recv) return "#1a7f5a";
  return receive == Kind::recv_reduce ? "#c2410c" : "#6d28d9";
}

struct Message {
  Rank from = -1;
  Rank to = -1;
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  Kind kind = Kind::recv;
  Block blocks;
};

/// n-th send of a pair with its n-th receive.
std::vector<Message> messages_of(const Schedule& schedule, std::uint32_t strand) {
  std::map<std::tuple<Rank, Rank, std::size_t>, Message> found;
  std::map<std::pair<Rank, Rank>, std::size_t> sends;
  std::map<std::pair<Rank, Rank>, std::size_t> receives;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
      for (const Step& step : steps_of(schedule, rank, strand, round)) {
        if (step.kind == Kind::reduce_slots) continue;
        const bool sends_it = step.kind == Kind::send;
        const std::pair pair = sends_it ? std::pair(rank, step.peer) : std::pair(step.peer, rank);
        const std::size_t n = sends_it ? sends[pair]++ : receives[pair]++;
        Message& message = found[{pair.first, pair.second, n}];
        message.from = pair.first;
        message.to = pair.second;
        message.blocks = step.blocks;
        (sends_it ? message.sent : message.received) = round;
        if (!sends_it) message.kind = step.kind;
      }
    }
  }
  std::vector<Message> messages;
  for (const auto& [key, message] : found) messages.push_back(message);
  return messages;
}

std::string draw_strand(const Schedule& schedule, std::uint32_t strand, int top) {
  std::string svg;
  const auto x = [](Rank rank) { return left_margin + rank * column_width + column_width / 2; };
  const auto y = [top](std::uint32_t round) { return top + static_cast<int>(round) * row_height; };
  const std::uint32_t rounds = most_rounds(schedule, strand);
  if (schedule.strands() > 1)
    svg += fmt::format("<text x='16' y='{}' class='small'>strand {}</text>\n", top - 24, strand);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    svg +=
        fmt::format("<text x='16' y='{}' class='small'>round {}</text>\n", y(round) + row_height / 2, round);
    svg += fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' class='grid'/>\n", left_margin, y(round),
                       x(schedule.ranks()) - column_width / 2, y(round));
  }
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    svg += fmt::format("<line x1='{0}' y1='{1}' x2='{0}' y2='{2}' class='life'/>\n", x(rank), top - 10,
                       y(rounds));
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (const Step& step : steps_of(schedule, rank, strand, round)) {
        if (step.kind == Kind::reduce_slots)
          svg += fmt::format("<circle cx='{}' cy='{}' r='6' fill='#6d28d9'/>\n", x(rank),
                             y(round) + row_height - 6);
      }
    }
  }
  const auto messages = messages_of(schedule, strand);
  // Where everybody sends to everybody, labels would only cover each other: the table has them.
  const bool labels = messages.size() <= 2UL * static_cast<std::size_t>(schedule.ranks()) * rounds;
  for (const Message& message : messages) {
    const int x1 = x(message.from);
    const int x2 = x(message.to);
    const int y1 = y(message.sent) + 10;
    const int y2 = y(message.received) + row_height - 16;
    svg += fmt::format(
        "<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' class='message' marker-end='url(#{})'/>\n", x1, y1,
        x2, y2, colour_of(message.kind), name_of(message.kind));
    if (!labels) continue;
    // Labels near the sender, where arrows of one round have not met yet, on the outer side of the arrow.
    svg += fmt::format("<text x='{}' y='{}' class='label' text-anchor='{}' fill='{}'>{}</text>\n",
                       x1 + (x2 - x1) / 4, y1 + (y2 - y1) / 4 - 4, x2 > x1 ? "start" : "end",
                       colour_of(message.kind), text_of(message.blocks));
  }
  return svg;
}

std::string legend(int y) {
  std::string svg;
  int x = left_margin;
  for (const auto& [kind, text] : {std::pair(Kind::recv, "overwrites"), std::pair(Kind::recv_reduce, "adds"),
                                   std::pair(Kind::recv_slot, "into a slot; dot: sum of slots")}) {
    svg += fmt::format(
        "<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' class='message' marker-end='url(#{})'/>\n", x, y,
        x + 30, y, colour_of(kind), name_of(kind));
    svg += fmt::format("<text x='{}' y='{}' class='small'>{}</text>\n", x + 38, y + 4, text);
    x += 150;
  }
  return svg;
}

}  // namespace

std::string explain(const Schedule& schedule, std::optional<Rank> only) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    if (!only || rank == *only) ranks.push_back(rank);
  }
  std::string text;
  for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
    if (schedule.strands() > 1) text += fmt::format("{}strand {}\n", strand == 0 ? "" : "\n", strand);
    text += table_of_strand(schedule, strand, ranks);
  }
  return text;
}

std::string summary_of(const Schedule& schedule) {
  std::uint32_t rounds = 0;
  std::size_t messages = 0;
  std::size_t blocks = 0;
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    std::size_t rank_messages = 0;
    std::size_t rank_blocks = 0;
    for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
      rounds = std::max(rounds, schedule.rounds(rank, strand));
      for (std::uint32_t round = 0; round < schedule.rounds(rank, strand); ++round) {
        for (const Step& step : steps_of(schedule, rank, strand, round)) {
          if (step.kind != Kind::send) continue;
          ++rank_messages;
          rank_blocks += step.blocks.size();
        }
      }
    }
    messages = std::max(messages, rank_messages);
    blocks = std::max(blocks, rank_blocks);
  }
  const Verdict verdict = check(schedule);
  std::string text =
      fmt::format("{} rounds; the busiest rank sends {} messages, {} blocks = {:.3g} of the buffer\n", rounds,
                  messages, blocks, static_cast<double>(blocks) / schedule.blocks());
  if (!verdict.correct) return text + fmt::format("NOT CORRECT: {}\n", verdict.first_defect);
  return text + fmt::format("proved: correct, {}, {}\n",
                            verdict.agrees ? "the same bits on all ranks" : "bits differ between ranks",
                            verdict.canonical ? "canonical order" : "another order than the canonical one");
}

std::string draw_svg(const Schedule& schedule, std::string_view title) {
  std::string body;
  int top = top_margin;
  for (std::uint32_t strand = 0; strand < schedule.strands(); ++strand) {
    body += draw_strand(schedule, strand, top);
    top += static_cast<int>(most_rounds(schedule, strand)) * row_height + 50;
  }
  for (Rank rank = 0; rank < schedule.ranks(); ++rank) {
    body += fmt::format("<text x='{}' y='{}' class='head'>rank {}</text>\n",
                        left_margin + rank * column_width + column_width / 2, 78, rank);
  }
  const int width = std::max(left_margin + schedule.ranks() * column_width + 20, 640);
  std::string svg =
      fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n",
                  width, top);
  svg +=
      "<style>text{font-family:sans-serif} .title{font-size:18px;font-weight:bold} "
      ".head{font-size:13px;text-anchor:middle;font-weight:bold}"
      " .small{font-size:12px;fill:#444} "
      ".label{font-size:11px;paint-order:stroke;stroke:#fff;stroke-width:3px}"
      " .grid{stroke:#eee} .life{stroke:#999;stroke-width:1.5} "
      ".message{stroke-width:1.8;fill:none}</style>\n<defs>\n";
  for (const Kind kind : {Kind::recv, Kind::recv_reduce, Kind::recv_slot}) {
    svg += fmt::format(
        "<marker id='{}' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
        "<path d='M0,0 L8,4 L0,8 z' fill='{}'/></marker>\n",
        name_of(kind), colour_of(kind));
  }
  svg += fmt::format(
      "</defs>\n<rect width='100%' height='100%' fill='white'/>\n<text x='16' y='28' "
      "class='title'>{}</text>\n",
      title);
  return svg + legend(50) + body + "</svg>\n";
}

}  // namespace tutti::schedule
