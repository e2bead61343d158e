// How much of the communication is hidden behind the backward pass: layers whose computing is a sleep, each
// with a gradient; steps with buckets that overlap and steps with one allreduce at the end, in turns. Prints
// medians over steps of the slowest rank. Not a test: run under mpirun as bench_overlap [layers] [bytes of
// each] [ms of computing in all] [steps].
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "tutti/reducer.hpp"
#include "tutti/session.hpp"

using namespace tutti;

namespace {

double median(Communicator& world, std::vector<double> values) {
  world.allreduce(std::span(values), Op::max);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::size_t otherwise) {
    return argc > i ? static_cast<std::size_t>(std::stoul(argv[i])) : otherwise;
  };
  const std::size_t layers = argument(1, 8);
  const std::size_t bytes = argument(2, 1 << 20);
  const double compute = static_cast<double>(argument(3, 100)) * 1e-3;
  const std::size_t steps = argument(4, 15);
  Session session(&argc, &argv);
  Communicator& world = session.world();
  const base::SteadyClock clock;
  std::vector<Reducer::Parameter> parameters;
  for (std::size_t i = 0; i < layers; ++i) parameters.push_back({"layer" + std::to_string(i), bytes / 4});
  ReducerOptions options;
  options.first_bucket_bytes = options.bucket_bytes = bytes;
  Reducer reducer(world, parameters, options);
  auto whole = world.allocate<float>(layers * bytes / 4);
  const auto pause = std::chrono::duration<double>(compute / static_cast<double>(layers));
  std::vector<double> with;
  std::vector<double> without;
  std::vector<double> communication;
  for (std::size_t step = 0; step < steps + 2; ++step) {
    world.barrier();
    Seconds begin = clock.now();
    for (std::size_t i = layers; i-- > 0;) {
      std::this_thread::sleep_for(pause);
      reducer.ready(i);
    }
    reducer.finish();
    const double overlapped = (clock.now() - begin).count();
    world.barrier();
    begin = clock.now();
    for (std::size_t i = 0; i < layers; ++i) std::this_thread::sleep_for(pause);
    const Seconds computed = clock.now();
    world.allreduce(whole.span(), Op::average);
    const Seconds end = clock.now();
    if (step < 2) continue;
    with.push_back(overlapped);
    without.push_back((end - begin).count());
    communication.push_back((end - computed).count());
  }
  const double step = median(world, with);
  const double plain = median(world, without);
  const double wire = median(world, communication);
  if (world.rank() != 0) return 0;
  const double bound = std::max(compute, wire) + std::min(compute, wire) / static_cast<double>(layers);
  fmt::print(
      "{} layers of {} bytes, {:.1f} ms of computing, {} ranks: communication alone {:.2f} ms; step {:.2f} "
      "ms with "
      "overlap, {:.2f} ms without; {:.3f} of max(compute, communication) + last bucket = {:.2f} ms\n",
      layers, bytes, compute * 1e3, world.size(), wire * 1e3, step * 1e3, plain * 1e3, step / bound,
      bound * 1e3);
  return 0;
}
