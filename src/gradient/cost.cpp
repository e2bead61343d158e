#include "gradient/cost.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace tutti::gradient {
namespace {

/// What is known to learn as dense does in the same number of steps; of those that cost the same one.
constexpr std::array<std::string_view, 5> automatic{"bf16", "int8", "int4", "topk", "powersgd"};

/// Of 1 MiB, as long as a part of a bucket. A square, for codecs that want a matrix.
constexpr std::size_t sample_side = 512;
constexpr std::size_t sample_size = sample_side * sample_side;

/// Longer samples are not worth their time.
constexpr double long_enough = 0.01;

template <class Call>
double median_time(int times, const Call& call) {
  const base::SteadyClock clock;
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const Seconds begin = clock.now();
    call();
    seconds.push_back((clock.now() - begin).count());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

void measure_codec(Candidate& candidate, std::span<const float> values) {
  compress::Codec& codec = *candidate.codec;
  compress::State state(values.size());
  std::vector<std::byte> out(codec.max_bytes(values.size()));
  std::vector<float> sum(values.size());
  compress::Piece piece{.size = values.size(), .rows = sample_side};
  std::size_t bytes = 0;
  const double encode = median_time(5, [&] {
    bytes = codec.encode(piece, values, state, out);
    ++piece.step;
  });
  const double decode = median_time(5, [&] { codec.decode_add(piece, std::span(out).first(bytes), sum); });
  const auto n = static_cast<double>(values.size());
  candidate.encode = encode / n;
  candidate.decode = decode / n;
  candidate.bytes = static_cast<double>(bytes) / n;
}

double agreed_time(Communicator& communicator, double seconds) {
  communicator.allreduce(std::span(&seconds, 1), Op::max, {.name = "measured time"});
  return seconds;
}

struct Line {
  double latency = 0;
  double slope = 0;  ///< an element
};

/// Times calls of one element and of more, until that takes long enough.
template <class Call>
Line line_of(Communicator& communicator, const Call& call) {
  call(1);
  Line line{.latency = agreed_time(communicator, median_time(9, [&] { call(1); }))};
  for (std::size_t count = std::size_t{1} << 14U; count <= sample_size * 4; count *= 8) {
    call(count);
    double seconds = agreed_time(communicator, median_time(1, [&] { call(count); }));
    if (seconds < long_enough) seconds = agreed_time(communicator, median_time(5, [&] { call(count); }));
    line.slope = std::max(0.0, seconds - line.latency) / static_cast<double>(count);
    if (seconds > long_enough) break;
  }
  return line;
}

double share(Rank ranks) {
  return static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

/// An allreduce by slice owners in bf16, less its work, tells what messages cost.
void measure_messages(Communicator& communicator, Wire& wire, const Candidate& bf16) {
  exchange::CodedState state(sample_size * 4);
  std::array<exchange::CodedState*, 1> states{&state};
  Buffer<float> bucket = communicator.allocate<float>(sample_size * 4);
  const Line line = line_of(communicator, [&](std::size_t count) {
    const std::vector<exchange::Run> runs{{.count = count, .size = count}};
    const auto slices = exchange::slices_of(runs, communicator.size(), bf16.codec->block());
    Work(exchange::start_coded_allreduce(communicator.state(), {.bucket = bucket.span().first(count),
                                                                .runs = runs,
                                                                .slices = &slices,
                                                                .states = states,
                                                                .codec = bf16.codec.get()}))
        .wait();
  });
  const double p = communicator.size();
  const double work = bf16.encode * (1 + 1 / p) + 2 * bf16.decode;
  wire.message_latency = line.latency / 2;
  wire.message_per_byte = std::max(0.0, line.slope - work) / (2 * bf16.bytes * share(communicator.size()));
}

/// What ranks add up, for each round of a linear codec.
double predict_sums(const Wire& wire, const compress::LinearCodec& codec, Rank ranks,
                    std::span<const exchange::Run> bucket) {
  double seconds = 0;
  for (std::size_t round = 0; round < codec.rounds(); ++round) {
    std::size_t sums = 0;
    for (const exchange::Run& run : bucket) {
      const compress::Piece piece{
          .parameter = run.parameter, .size = run.size, .rows = run.rows, .ranks = ranks};
      sums += codec.sums(piece, run.count, round);
    }
    if (sums > 0)
      seconds += wire.dense_latency + wire.dense_per_byte * sizeof(float) * static_cast<double>(sums);
  }
  return seconds;
}

}  // namespace

double predict(const Wire& wire, const Candidate& candidate, Rank ranks,
               std::span<const exchange::Run> bucket) {
  double n = 0;
  for (const exchange::Run& run : bucket) n += static_cast<double>(run.count);
  if (!candidate.codec) return wire.dense_latency + wire.dense_per_byte * sizeof(float) * n;
  const double p = ranks;
  switch (candidate.codec->algebra()) {
    case compress::Algebra::linear: {
      const auto& codec = dynamic_cast<const compress::LinearCodec&>(*candidate.codec);
      return n * (candidate.encode + candidate.decode) + predict_sums(wire, codec, ranks, bucket);
    }
    case compress::Algebra::gatherable:
      return n * (candidate.encode + p * candidate.decode) + wire.message_latency +
             wire.message_per_byte * (p - 1) * candidate.bytes * n;
    case compress::Algebra::reencodable: break;
  }
  return n * (candidate.encode * (1 + 1 / p) + 2 * candidate.decode) + 2 * wire.message_latency +
         wire.message_per_byte * 2 * share(ranks) * candidate.bytes * n;
}

std::vector<Candidate> candidates_of(compress::ErrorClass most) {
  std::vector<Candidate> candidates;
  candidates.push_back({.text = "dense"});
  for (const std::string_view name : automatic) {
    auto codec = compress::make_codec(name);
    if (codec->error_class() <= most)
      candidates.push_back({.text = std::string(name), .codec = std::move(codec)});
  }
  return candidates;
}

Wire measure(Communicator& communicator, std::span<Candidate> candidates) {
  base::Random random(1);
  std::vector<float> values(sample_size);
  for (float& x : values) x = static_cast<float>(random.normal());
  Candidate bf16{.text = "bf16", .codec = compress::make_codec("bf16")};
  measure_codec(bf16, values);
  std::vector<double> slowest{bf16.encode, bf16.decode};
  for (Candidate& candidate : candidates) {
    if (candidate.codec) measure_codec(candidate, values);
    slowest.insert(slowest.end(), {candidate.encode, candidate.decode});
  }
  communicator.allreduce(std::span(slowest), Op::max, {.name = "rates of codecs"});
  bf16.encode = slowest[0];
  bf16.decode = slowest[1];
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].encode = slowest[2 * i + 2];
    candidates[i].decode = slowest[2 * i + 3];
  }
  Buffer<float> buffer = communicator.allocate<float>(sample_size * 4);
  const Line dense = line_of(communicator, [&](std::size_t count) {
    communicator.allreduce(buffer.span().first(count), Op::sum, {.name = "measured allreduce"});
  });
  Wire wire{.dense_latency = dense.latency, .dense_per_byte = dense.slope / sizeof(float)};
  measure_messages(communicator, wire, bf16);
  return wire;
}

}  // namespace tutti::gradient
