#include "compress/codec.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"

namespace tutti::compress {

std::span<float> State::array(std::string_view name) {
  return array(name, size_);
}

std::span<float> State::array(std::string_view name, std::size_t size) {
  const auto known = arrays_.find(name);
  if (known == arrays_.end())
    return arrays_.emplace(std::string(name), std::vector<float>(size)).first->second;
  base::require(known->second.size() == size, "what a codec keeps as '{}' has {} values, expected {}", name,
                known->second.size(), size);
  return known->second;
}

double& State::number(std::string_view name) {
  const auto known = numbers_.find(name);
  if (known != numbers_.end()) return known->second;
  return numbers_.emplace(std::string(name), 0.0).first->second;
}

float* residual_of(const Piece& piece, std::size_t count, State& state) {
  base::require(piece.offset <= state.size() && count <= state.size() - piece.offset,
                "elements {} to {} are not of a parameter of {}", piece.offset, piece.offset + count,
                state.size());
  return state.array(residual_name).data() + piece.offset;
}

std::size_t LinearCodec::sums(const Piece& /*piece*/, std::size_t count, std::size_t round) const {
  return round == 0 ? max_bytes(count) / sizeof(float) : 0;
}

void LinearCodec::contribute(const Piece& piece, std::size_t /*round*/, std::span<const float> in,
                             State& state, std::span<float> /*before*/, std::span<float> out) {
  encode(piece, in, state, std::as_writable_bytes(out));
}

void LinearCodec::conclude(const Piece& piece, std::span<const float> sums, State& /*state*/,
                           std::span<float> values) {
  decode(piece, std::as_bytes(sums), values);
}

Options::Options(std::string_view codec, std::string_view text) : codec_(codec) {
  while (!text.empty()) {
    const auto end = std::min(text.find(':'), text.size());
    const std::string_view option = text.substr(0, end);
    const auto equals = option.find('=');
    base::require(equals != std::string_view::npos && equals > 0 && equals + 1 < option.size(),
                  "codec '{}': '{}' is not an option; expected name=value", codec, option);
    const bool fresh =
        given_.emplace(std::string(option.substr(0, equals)), std::string(option.substr(equals + 1))).second;
    base::require(fresh, "codec '{}': option '{}' is given twice", codec, option.substr(0, equals));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

const std::string* Options::find(std::string_view name) {
  asked_.emplace_back(name);
  const auto given = given_.find(name);
  return given == given_.end() ? nullptr : &given->second;
}

std::uint64_t Options::number(std::string_view name, std::uint64_t otherwise, std::uint64_t least,
                              std::uint64_t most) {
  const std::string* text = find(name);
  if (text == nullptr) return otherwise;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  base::require(error == std::errc() && end == text->data() + text->size() && value >= least && value <= most,
                "codec '{}': {}='{}': expected a whole number from {} to {}", codec_, name, *text, least,
                most);
  return value;
}

double Options::real(std::string_view name, double otherwise, double least, double most) {
  const std::string* text = find(name);
  if (text == nullptr) return otherwise;
  double value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  base::require(error == std::errc() && end == text->data() + text->size() && value >= least && value <= most,
                "codec '{}': {}='{}': expected a number from {} to {}", codec_, name, *text, least, most);
  return value;
}

std::string Options::choice(std::string_view name, std::span<const std::string_view> allowed) {
  const std::string* text = find(name);
  if (text == nullptr) return std::string(allowed.front());
  base::require(std::ranges::find(allowed, *text) != allowed.end(), "codec '{}': {}='{}': expected {}",
                codec_, name, *text, fmt::join(allowed, " or "));
  return *text;
}

bool Options::flag(std::string_view name, bool otherwise) {
  const std::string* text = find(name);
  if (text == nullptr) return otherwise;
  base::require(*text == "on" || *text == "off", "codec '{}': {}='{}': expected on or off", codec_, name,
                *text);
  return *text == "on";
}

void Options::finish() const {
  for (const auto& [name, value] : given_) {
    base::require(std::ranges::find(asked_, name) != asked_.end(), "codec '{}' has no option '{}'{}{}",
                  codec_, name, asked_.empty() ? "" : "; it has ", fmt::join(asked_, ", "));
  }
}

std::unique_ptr<Codec> make_codec(std::string_view text) {
  const auto colon = std::min(text.find(':'), text.size());
  const std::string_view name = text.substr(0, colon);
  std::vector<std::string_view> names;
  for (const Entry& entry : codecs()) {
    names.push_back(entry.name);
    if (entry.name != name) continue;
    Options options(name, text.substr(std::min(colon + 1, text.size())));
    auto codec = entry.make(options);
    options.finish();
    return codec;
  }
  base::fail<InvalidArgument>("unknown codec '{}'; known are {}", name, fmt::join(names, ", "));
}

}  // namespace tutti::compress
