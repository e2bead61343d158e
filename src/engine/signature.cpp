#include "engine/signature.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/random.hpp"

namespace tutti::engine {
namespace {

/// Words of a signature: collective | type | op | free | root; count; hash of the rest; hash of all calls
/// before; the first characters of the name.
enum Word : std::size_t { word_kind, word_count, word_rest, word_history, word_name };

constexpr std::size_t shown_name = 16;

/// Eight characters at a time: names are hashed at every call.
std::uint64_t hash_of(std::string_view text, std::uint64_t hash) {
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    hash = base::mix(hash ^ word);
  }
  std::uint64_t rest = text.size() << 56U;
  for (std::size_t i = 0; i < text.size(); ++i)
    rest |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(text[i])) << 8 * i;
  return base::mix(hash ^ rest);
}

}  // namespace

transport::Signature signature_of(const Request& request) {
  transport::Signature signature;
  const bool reduces = schedule::adds(request.collective);
  signature.words[word_kind] = static_cast<std::uint64_t>(request.collective) << 56U |
                               static_cast<std::uint64_t>(request.type) << 48U |
                               (reduces ? static_cast<std::uint64_t>(request.op) : 0xff) << 40U |
                               static_cast<std::uint32_t>(request.root);
  signature.words[word_count] = request.count;
  std::uint64_t rest =
      base::mix(std::bit_cast<std::uint64_t>(request.prescale) + (request.any_order ? 1 : 0));
  for (const std::size_t count : request.counts) rest = base::mix(rest ^ count);
  if (request.context != 0) rest = base::mix(rest ^ request.context);
  if (!request.algorithm.empty()) rest = hash_of(request.algorithm, rest + 1);
  signature.words[word_rest] = hash_of(request.name, rest);
  const std::size_t shown = std::min(request.name.size(), shown_name);
  if (shown > 0) std::memcpy(&signature.words[word_name], request.name.data(), shown);
  return signature;
}

std::uint32_t CallLog::add(const Request& request, transport::Signature& signature) {
  signature = signature_of(request);
  signature.words[word_history] = history_;
  history_ = base::mix(history_ * 0x9e3779b97f4a7c15ULL ^ one_word(signature));
  const std::uint32_t sequence = next_.load(std::memory_order_relaxed);
  Entry& entry = entries_[sequence % kept];
  for (std::size_t i = 0; i < signature.words.size(); ++i)
    entry.words[i].store(signature.words[i], std::memory_order_relaxed);
  next_.store(sequence + 1, std::memory_order_release);
  return sequence;
}

transport::Signature CallLog::at(std::uint32_t sequence) const {
  transport::Signature signature;
  for (std::size_t i = 0; i < signature.words.size(); ++i)
    signature.words[i] = entries_[sequence % kept].words[i].load(std::memory_order_relaxed);
  return signature;
}

bool CallLog::knows(std::uint32_t sequence) const {
  const std::uint32_t next = next_.load(std::memory_order_acquire);
  // Numbers wrap around. One less than are kept: the oldest may be being written over.
  return next - sequence - 1 < std::min(kept - 1, next);
}

std::uint64_t one_word(const transport::Signature& s) {
  return base::mix(s.words[word_kind] ^ s.words[word_count] * 0x9e3779b97f4a7c15ULL ^
                   s.words[word_rest] * 0xc2b2ae3d27d4eb4fULL ^
                   s.words[word_history] * 0x165667b19e3779f9ULL);
}

std::string difference(const transport::Signature& here, const transport::Signature& there) {
  transport::Signature same = there;
  same.words[word_history] = here.words[word_history];
  if (same == here)
    return fmt::format("{}, but after other calls than here; an earlier one differs", describe(there));
  return fmt::format("{} instead", describe(there));
}

std::string describe(const transport::Signature& signature) {
  const std::uint64_t kind = signature.words[word_kind];
  const auto collective = static_cast<schedule::Collective>(kind >> 56U);
  const auto type = static_cast<DType>(kind >> 48U & 0xff);
  const std::uint64_t op = kind >> 40U & 0xff;
  const bool rooted =
      collective == schedule::Collective::broadcast || collective == schedule::Collective::reduce;
  std::string name(shown_name, '\0');
  std::memcpy(name.data(), &signature.words[word_name], name.size());
  name.resize(std::min(name.find('\0'), name.size()));
  return fmt::format(
      "{}{} of {} {}{}{} [{:08x}]", schedule::name_of(collective),
      op == 0xff ? "" : fmt::format(" {}", name_of(static_cast<Op>(op))), signature.words[word_count],
      name_of(type), name.empty() ? "" : fmt::format(" '{}'", name),
      rooted ? fmt::format(" root {}", kind & 0xffffffff) : "", signature.words[word_rest] >> 32U);
}

}  // namespace tutti::engine
