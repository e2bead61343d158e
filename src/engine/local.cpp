#include "engine/local.hpp"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "engine/communicator_state.hpp"
#include "transport/shaped.hpp"

namespace tutti::engine {
namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
}

void run_rank(std::unique_ptr<transport::Transport> endpoint, Rank ranks, const LocalOptions& options,
              const std::function<void(Communicator&)>& body) {
  auto runtime = std::make_shared<Runtime>();
  runtime->options = options.core;
  runtime->profile = options.profile;
  const auto limits = base::WaitLimits::for_load(static_cast<unsigned>(ranks), base::usable_processors());
  runtime->progress =
      std::make_shared<Progress>(std::make_shared<base::SteadyClock>(), limits,
                                 options.background_thread ? Unattended::thread : Unattended::calls_only);
  if (options.faults.fail_at != 0 || options.faults.delay_turns != 0)
    endpoint = make_faulty(std::move(endpoint), options.faults);
  if (options.link)
    endpoint = make_shaped(std::move(endpoint), *options.link, std::make_shared<base::SteadyClock>());
  auto state = std::make_shared<CommunicatorState>(std::move(runtime), std::move(endpoint));
  if (options.shared_memory) {
    const auto rank = static_cast<std::size_t>(state->rank());
    state->lay_out(transport::make_thread_sharer(), options.nodes.empty() ? 0 : options.nodes[rank]);
  }
  Communicator communicator(std::move(state));
  body(communicator);
}

}  // namespace

std::vector<std::exception_ptr> run_local_catching(Rank ranks, const LocalOptions& options,
                                                   const std::function<void(Communicator&)>& body) {
  auto group = transport::make_loopback(ranks, options.protocol);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(ranks));
  {
    std::vector<std::jthread> threads;
    for (Rank rank = 0; rank < ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      threads.emplace_back([&, rank, index] {
        try {
          run_rank(std::move(group.endpoints[index]), ranks, options, body);
        } catch (...) {
          errors[index] = std::current_exception();
          abort_loopback(*group.hub, rank, fmt::format("rank {} is gone: {}", rank, text_of(errors[index])));
        }
      });
    }
  }
  return errors;
}

void run_local(Rank ranks, const LocalOptions& options, const std::function<void(Communicator&)>& body) {
  const auto errors = run_local_catching(ranks, options, body);
  std::string all;
  for (std::size_t rank = 0; rank < errors.size(); ++rank) {
    if (errors[rank])
      all += fmt::format("{}rank {}: {}", all.empty() ? "" : "\n", rank, text_of(errors[rank]));
  }
  if (!all.empty()) throw Error(all);
}

}  // namespace tutti::engine
