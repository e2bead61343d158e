#include "train/agree.hpp"

#include <span>

#include "base/host.hpp"

namespace tutti::train {

std::string broadcast_text(Communicator& world, std::string text, Rank root) {
  std::uint64_t length = text.size();
  world.broadcast(std::span(&length, 1), root, {.name = "text length"});
  text.resize(length);
  world.broadcast(text.data(), length, DType::u8, root, {.name = "text"});
  return text;
}

void agree(Communicator& world, const std::string& complaint) {
  std::int32_t first = complaint.empty() ? world.size() : world.rank();
  world.allreduce(std::span(&first, 1), Op::min, {.name = "agreement"});
  if (first == world.size()) return;
  const std::string where =
      world.size() == 1 ? "" : fmt::format("rank {} of {} ({}): ", first, world.size(), base::host_name());
  const std::string text = broadcast_text(world, where + complaint, first);
  world.barrier();  // nobody leaves before all have the text
  throw base::AgreedError(text);
}

}  // namespace tutti::train
