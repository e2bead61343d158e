#include "engine/communicator_state.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "engine/overlap.hpp"
#include "engine/predict.hpp"
#include "engine/workspace.hpp"

namespace tutti::engine {

using schedule::Collective;

CommunicatorState::CommunicatorState(std::shared_ptr<const Runtime> runtime,
                                     std::unique_ptr<transport::Transport> transport)
    : runtime_(std::move(runtime)),
      transport_(std::move(transport)),
      lookout_(*transport_, calls_),
      engine_(lookout_, runtime_->options) {
  const Profile* profile = runtime_->profile.get();
  engine_.set_links(profile != nullptr ? profile->local : std::nullopt,
                    profile != nullptr && profile->remote ? profile->remote : runtime_->remote_link);
  if (transport::NativeCollectives* native = transport_->native())
    library_ = std::make_unique<Library>(*native, rank(), size());
}

/// The session's algorithm is for all allreduces that can; a call's is an order.
Request CommunicatorState::prepare(Request request, const CallOptions& options) {
  request.prescale = options.prescale;
  request.any_order = options.order ? *options.order == Order::any : runtime_->options.any_order;
  request.algorithm = options.algorithm;
  request.name = options.name;
  if (options.algorithm.empty() && request.collective == Collective::allreduce &&
      !runtime_->options.algorithm.empty()) {
    const Choice choice = parse_choice(request.collective, runtime_->options.algorithm);
    if (choice.path == Path::schedule || refusal(request, choice).empty())
      request.algorithm = runtime_->options.algorithm;
  }
  return request;
}

std::string CommunicatorState::problem(const Request& request) const {
  if (request.root < 0 || request.root >= size())
    return fmt::format("root {} is not a rank of this communicator (0 to {})", request.root, size() - 1);
  if (!std::isfinite(request.prescale))
    return fmt::format("prescale is {}; it must be finite", request.prescale);
  const bool adds =
      request.collective != Collective::allgather && request.collective != Collective::broadcast;
  if (request.prescale != 1.0 && !adds)
    return fmt::format("prescale {} where nothing is added; it is for allreduce, reduce_scatter and reduce",
                       request.prescale);
  if (request.prescale != 1.0 && !is_floating(request.type))
    return fmt::format("prescale {} needs a floating element type, not {}", request.prescale,
                       name_of(request.type));
  const bool by_rank =
      request.collective == Collective::reduce_scatter || request.collective == Collective::allgather;
  const std::size_t copies = by_rank && request.counts.empty() ? static_cast<std::size_t>(size()) : 1;
  if (request.count > (std::size_t{1} << 62U) / copies / request.element_bytes())
    return fmt::format("{} elements do not fit in memory", request.count);
  return buffer_problem(request, rank(), size());
}

/// What nearly all calls are: good at a glance.
bool CommunicatorState::plain(const Request& request) const {
  if (request.collective != Collective::allreduce || request.prescale != 1.0 || request.root != 0)
    return false;
  if (request.count == 0 || request.count > std::size_t{1} << 40U) return false;
  const auto input = reinterpret_cast<std::uintptr_t>(request.input);
  const auto output = reinterpret_cast<std::uintptr_t>(request.output);
  const std::size_t apart = input < output ? output - input : input - output;
  return input != 0 && output != 0 && (apart == 0 || apart >= request.count * request.element_bytes());
}

void CommunicatorState::check(const Request& request) const {
  if (plain(request)) return;
  const std::string what = problem(request);
  if (what.empty()) return;
  base::fail<InvalidArgument>("{}{} on {}: {}", schedule::name_of(request.collective),
                              request.name.empty() ? "" : fmt::format(" '{}'", request.name),
                              transport_->describe(rank()), what);
}

void CommunicatorState::check_alive(std::string_view call) {
  if (runtime_->only_thread != std::thread::id() && runtime_->only_thread != std::this_thread::get_id()) {
    base::fail<InvalidArgument>(
        "{} on {}: called from another thread than the one that initialized MPI, which was not asked for "
        "more "
        "threads; initialize it with MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE",
        call, transport_->describe(rank()));
  }
  if (!unfinished_.empty()) forget_finished();
  if (!failure_.empty())
    base::fail<Error>("this communicator failed before and takes no further operations: {}", failure_);
}

CommunicatorState::~CommunicatorState() {
  const bool unwinding = std::uncaught_exceptions() > exceptions_;
  for (const auto& [sequence, pending] : unfinished_) {
    if (unwinding) Progress::end(*pending, patience_while_unwinding);
    while (!Progress::test(*pending)) std::this_thread::yield();
  }
  if (node_) node_->close();
  const std::scoped_lock lock(runtime_->progress->token());
  transport_.reset();
}

void CommunicatorState::forget_finished() {
  for (const auto& [sequence, pending] : unfinished_) {
    if (pending->finished() && pending->failed())
      poison(sequence, "an asynchronous operation failed; its wait() says how");
  }
  std::erase_if(unfinished_, [](const auto& entry) { return entry.second->finished(); });
}

std::uint32_t CommunicatorState::number(const Request& request, transport::Signature& signature) {
  const std::uint32_t sequence = calls_.add(request, signature);
  while (!unfinished_.empty() && sequence - unfinished_.front().first >= transport::sequence_window) {
    // Its owner will see whether it failed; here only its end matters.
    while (!Progress::test(*unfinished_.front().second)) std::this_thread::yield();
    forget_finished();
  }
  if (!failure_.empty())
    base::fail<Error>("this communicator failed before and takes no further operations: {}", failure_);
  if (node_) node_->note_call(sequence, signature);
  return sequence;
}

void CommunicatorState::poison(std::uint32_t sequence, const char* reason) {
  if (failure_.empty()) failure_ = fmt::format("operation #{}: {}", sequence, reason);
}

std::string CommunicatorState::refusal(const Request& request, const Choice& choice) {
  switch (choice.path) {
    case Path::automatic: return {};
    case Path::node: return node_ ? "" : "these ranks share no memory, or not all of them";
    case Path::hierarchy:
      if (!hierarchy_) return "these ranks are on one node, or each on its own";
      return hierarchy_->accepts(request) ? "" : "this call cannot go through a hierarchy of nodes";
    case Path::schedule: return engine_.refusal(request, choice);
    case Path::library: break;
  }
  return library_ ? library_->refusal(request) : "there is no MPI below";
}

bool CommunicatorState::keeps_order(const Request& request, const Choice& choice) {
  return choice.path != Path::schedule || engine_.keeps_order(request, choice);
}

CommunicatorState::Route CommunicatorState::route(const Request& request) {
  if (!request.algorithm.empty()) {
    const Choice choice = parse_choice(request.collective, request.algorithm);
    const std::string problem = refusal(request, choice);
    base::require(problem.empty(), "{}{} on {}: algorithm '{}': {}", schedule::name_of(request.collective),
                  request.name.empty() ? "" : fmt::format(" '{}'", request.name),
                  transport_->describe(rank()), request.algorithm, problem);
    return {choice, nullptr};
  }
  if (!rules_.empty() && request.count > 0) {
    const std::uint64_t bytes = message_bytes(request, size());
    for (const Rule& rule : rules_) {
      if (rule.matches(request, bytes) && refusal(request, rule.use).empty() &&
          keeps_order(request, rule.use))
        return {rule.use, &rule};
    }
  }
  return {untuned(request), nullptr};
}

Choice CommunicatorState::untuned(const Request& request) {
  if (node_) return {.path = Path::node};
  if (hierarchy_ && hierarchy_->accepts(request)) return {.path = Path::hierarchy};
  return {.path = Path::schedule};
}

transport::Traffic CommunicatorState::traffic() const {
  transport::Traffic sum = transport_->traffic();
  if (!hierarchy_) return sum;
  for (const CommunicatorState* part : {&hierarchy_->node(), &hierarchy_->rail()}) {
    sum.messages += part->traffic().messages;
    sum.bytes += part->traffic().bytes;
  }
  return sum;
}

CommunicatorState* CommunicatorState::rail() const {
  return hierarchy_ ? &hierarchy_->rail() : nullptr;
}

double CommunicatorState::predict(const Request& request, const Choice& choice) {
  const Profile* profile = runtime_->profile.get();
  const schedule::Link memory =
      profile != nullptr ? profile->memory.value_or(default_memory) : default_memory;
  const auto in_node = [&](Request part, Collective collective, Rank ranks) {
    part.collective = collective;
    return node_seconds(part, ranks, runtime_->processors, false, limits_, memory);
  };
  switch (choice.path) {
    case Path::node: return in_node(request, request.collective, size());
    case Path::library: return std::numeric_limits<double>::infinity();
    case Path::hierarchy: return hierarchy_->predict(request, in_node);
    case Path::automatic:
    case Path::schedule: break;
  }
  if (choice.algorithm == nullptr) return engine_.choose(request).seconds;
  Request named = request;
  const std::string text = text_of(choice);
  named.algorithm = text;
  return engine_.choose(named).seconds;
}

/// Of the profile's rules those that are for as many ranks on as many nodes.
void CommunicatorState::bind_rules() {
  if (!runtime_->profile) return;
  for (const Rule& rule : runtime_->profile->rules) {
    if (rule.serves(size(), nodes_)) rules_.push_back(rule);
  }
}

std::string CommunicatorState::label(std::uint32_t sequence, const transport::Signature& signature) const {
  return fmt::format("operation #{}, {}, on {}", sequence, describe(signature), transport_->describe(rank()));
}

template <class Run>
void CommunicatorState::guarded(std::uint32_t sequence, const Run& run) {
  try {
    run();
  } catch (const std::exception& error) {
    poison(sequence, error.what());
    throw;
  }
}

void CommunicatorState::run(const Request& request) {
  check_alive(schedule::name_of(request.collective));
  check(request);
  const bool plainly_in_node = node_ && rules_.empty() && request.algorithm.empty();
  if (!plainly_in_node && !request.algorithm.empty()) route(request);  // throws before the call is numbered
  transport::Signature signature;
  const std::uint32_t sequence = number(request, signature);
  if (!plainly_in_node || !unfinished_.empty()) return run_anyhow(request, sequence, signature);
  guarded(sequence, [&] {
    node::NodeOperation operation(*node_, limits_, request, sequence, signature);
    runtime_->progress->run_alone(operation, runtime_->options.timeout);
  });
}

void CommunicatorState::run_anyhow(const Request& request, std::uint32_t sequence,
                                   const transport::Signature& signature) {
  Progress& progress = *runtime_->progress;
  std::optional<Library::Turnout> blocking;
  guarded(sequence, [&] {
    progress.run(operation_for(request, sequence, signature, &blocking), runtime_->options.timeout);
    if (!blocking) return;
    // All ranks are in this call. Where MPI takes calls from one thread at a time, nobody else may make one
    // meanwhile; else they may have to, for a call of another communicator that this rank's peers are in.
    std::unique_lock lock(progress.token(), std::defer_lock);
    if (!runtime_->many_threads) lock.lock();
    library_->run(request, *blocking);
  });
}

std::unique_ptr<Operation> CommunicatorState::library_operation(const Request& request,
                                                                std::uint32_t sequence,
                                                                const transport::Signature& signature,
                                                                std::optional<Library::Turnout>* blocking) {
  const Library::Entry entry = [&](const Library::Turnout& in,
                                   Library::Turnout& out) -> std::unique_ptr<Operation> {
    const Request all_here{
        .input = &in, .output = &out, .count = sizeof in, .type = DType::u8, .op = Op::max};
    if (node_) return std::make_unique<node::NodeOperation>(*node_, limits_, all_here, sequence, signature);
    return engine_.start(all_here, sequence);
  };
  return library_->start(request, entry, label(sequence, signature), blocking);
}

std::unique_ptr<Operation> CommunicatorState::operation_for(const Request& request, std::uint32_t sequence,
                                                            const transport::Signature& signature,
                                                            std::optional<Library::Turnout>* blocking) {
  const auto [choice, rule] = route(request);
  switch (choice.path) {
    case Path::node:
      return std::make_unique<node::NodeOperation>(*node_, limits_, request, sequence, signature);
    case Path::hierarchy: return hierarchy_->start(request, sequence, label(sequence, signature));
    case Path::library: return library_operation(request, sequence, signature, blocking);
    case Path::automatic:
    case Path::schedule: break;
  }
  if (rule == nullptr) return engine_.start(request, sequence);
  const std::string text = text_of(choice);
  Request tuned = request;
  tuned.algorithm = text;
  return engine_.start(tuned, sequence);
}

std::unique_ptr<Operation> CommunicatorState::make(const Request& request) {
  transport::Signature signature;
  const std::uint32_t sequence = number(request, signature);
  return operation_for(request, sequence, signature);
}

std::shared_ptr<Pending> CommunicatorState::start(const Request& request) {
  check_alive(schedule::name_of(request.collective));
  check(request);
  if (!request.algorithm.empty()) route(request);  // throws before the call is numbered
  transport::Signature signature;
  const std::uint32_t sequence = number(request, signature);
  auto pending =
      runtime_->progress->add(operation_for(request, sequence, signature), runtime_->options.timeout);
  unfinished_.emplace_back(sequence, pending);
  return pending;
}

std::shared_ptr<Pending> CommunicatorState::start(const Request& request, const Maker& make) {
  check_alive(request.name);
  check(request);
  transport::Signature signature;
  const std::uint32_t sequence = number(request, signature);
  auto pending = runtime_->progress->add(make(lookout_, sequence, label(sequence, signature)),
                                         runtime_->options.timeout);
  unfinished_.emplace_back(sequence, pending);
  return pending;
}

std::vector<std::int32_t> CommunicatorState::gather_numbers(std::int32_t mine, std::string_view name) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(size()));
  run({.collective = Collective::allgather,
       .input = &mine,
       .output = all.data(),
       .count = 1,
       .type = DType::i32,
       .name = name});
  return all;
}

std::shared_ptr<CommunicatorState> CommunicatorState::split(int color, int key) {
  check_alive("split");
  // Once all have the colors, all are here: nobody blocks below for long, whatever else is on its way.
  const std::vector<std::int32_t> colors = gather_numbers(color, "split");
  for (Rank r = 0; r < size(); ++r) {
    const std::int32_t theirs = colors[static_cast<std::size_t>(r)];
    base::require(theirs >= 0, "split: color {} of {} is negative", theirs, transport_->describe(r));
  }
  std::shared_ptr<CommunicatorState> part;
  {
    const std::scoped_lock lock(runtime_->progress->token());
    part = std::make_shared<CommunicatorState>(runtime_, transport_->split(color, key));
  }
  if (laid_out_) part->lay_out(sharer_, node_number_);
  return part;
}

std::byte* CommunicatorState::peer_memory(const std::byte* data, std::size_t bytes, Rank peer) const {
  const node::Word word = node_ ? node_->arena().word_of(data, bytes) : 0;
  return word == 0 ? nullptr : node_->arena().at(word, peer);
}

std::string CommunicatorState::paths() const {
  if (size() == 1) return "none needed";
  if (node_) return fmt::format("shared memory between {} ranks", size());
  if (hierarchy_) return hierarchy_->describe();
  if (const auto& link = runtime_->options.link)
    return fmt::format("messages, each rank behind a link of {}", link->text);
  return "messages";
}

}  // namespace tutti::engine
