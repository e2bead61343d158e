#include "tutti/session.hpp"

#include <algorithm>
#include <exception>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/host.hpp"
#include "base/wait.hpp"
#include "engine/communicator_state.hpp"
#include "engine/profile.hpp"
#include "schedule/schedule.hpp"
#include "transport/mpi.hpp"
#include "transport/shaped.hpp"

namespace tutti {
namespace {

using transport::MpiEnvironment;
using transport::ThreadLevel;

/// Whether a thread of tutti's may call MPI while the user's threads do what they like, and why.
std::pair<engine::Unattended, std::string> unattended_progress(const MpiEnvironment& mpi) {
  const auto level = mpi.thread_level();
  if (level == ThreadLevel::multiple) return {engine::Unattended::thread, "MPI allows calls from any thread"};
  if (level == ThreadLevel::serialized && mpi.initialized_here()) {
    return {engine::Unattended::thread, "tutti initialized MPI, and all calls to it are tutti's"};
  }
  return {engine::Unattended::calls_only,
          fmt::format("MPI was initialized by the program at level {}: initialize it with "
                      "MPI_THREAD_MULTIPLE, or let tutti do it",
                      name_of(level))};
}

/// A turn asks the network's software, which takes as long as some spins, and needs the processor.
constexpr std::uint32_t remote_spins = 0;

/// The options of this process; a wrong one on any rank is an error on every rank.
base::CoreOptions agreed_options(const MpiEnvironment& mpi, const SessionOptions& given) {
  base::CoreOptions options;
  std::string complaint;
  try {
    options = base::CoreOptions::from_environment();
    if (!given.link.empty()) options.link = base::parse_link(given.link, "link");
    if (!options.algorithm.empty()) engine::parse_choice(schedule::Collective::allreduce, options.algorithm);
  } catch (const InvalidArgument& error) {
    complaint = error.what();
  }
  mpi.agree(complaint);
  mpi.require_same(
      "the options of tutti (variables TUTTI_ORDER, TUTTI_ALGORITHM, TUTTI_SEGMENT_BYTES, "
      "TUTTI_MESSAGE_BYTES, TUTTI_SHARED_MEMORY, TUTTI_SHARED_CELL, TUTTI_LINK)",
      fmt::format("order={} algorithm={} segment={} message={} shared={} cell={} link={}",
                  options.any_order ? "any" : "canonical", options.algorithm, options.segment_bytes,
                  options.message_bytes, options.shared_memory, options.shared_cell,
                  options.link ? options.link->text : "none"));
  return options;
}

/// Networks differ by factors of thousands: what nobody has tuned for is at least looked at.
std::optional<schedule::Link> probed_link(const MpiEnvironment& mpi) {
  const auto wire = mpi.probe_wire();
  if (!wire) return {};
  schedule::Link link = engine::default_remote_link;
  link.latency_s = wire->latency.count();
  link.seconds_per_byte = wire->seconds_per_byte;
  return link;
}

struct ProfileFile {
  std::string path;
  std::string text;  ///< empty: there is none
  std::string complaint;
};

ProfileFile read_profile(const base::CoreOptions& options, const std::string& machine) {
  ProfileFile file;
  const bool named = !options.profile.empty();
  if (options.link && !named) return file;  // what was measured was not behind these links
  if (options.profile == "off" || (!named && options.cache_folder.empty())) return file;
  file.path = named ? options.profile : engine::profile_path(options.cache_folder, machine);
  std::ifstream stream(file.path);
  std::ostringstream text;
  if (stream) text << stream.rdbuf();
  file.text = text.str();
  if (named && file.text.empty())
    file.complaint = fmt::format(
        "TUTTI_PROFILE='{}': no such file, or an empty one; write it with tutti tune, or set "
        "TUTTI_PROFILE=off",
        file.path);
  return file;
}

/// What rank 0 has, for all; null: nothing, or nothing that fits.
std::shared_ptr<const engine::Profile> agreed_profile(const MpiEnvironment& mpi,
                                                      const base::CoreOptions& options,
                                                      const base::Log& log) {
  const std::string machine = engine::fingerprint(mpi.library());
  ProfileFile file;
  if (mpi.rank() == 0) file = read_profile(options, machine);
  mpi.agree(file.complaint);
  const std::string path = mpi.broadcast(file.path);
  const std::string text = mpi.broadcast(file.text);
  if (text.empty()) return nullptr;
  const bool named = mpi.broadcast(options.profile) == path;
  const bool speaks = mpi.rank() == 0;
  try {
    auto profile = std::make_shared<engine::Profile>(engine::Profile::parse(text, path));
    if (speaks) {
      for (const std::string& warning : profile->warnings) log(base::Level::warning, "{}", warning);
    }
    if (mpi.all(profile->machine == machine)) return profile;
    if (speaks) {
      log(base::Level::warning,
          "profile '{}' was made on another machine than some of these ({}; here {}): {}", path,
          profile->machine, machine, named ? "used, as it was named" : "not used; tune here");
    }
    return named ? profile : nullptr;
  } catch (const InvalidArgument& error) {
    if (named) throw base::AgreedError(error.what());
    if (speaks) log(base::Level::warning, "{}; it is not used", error.what());
    return nullptr;
  }
}

}  // namespace

class Session::Impl {
 public:
  Impl(int* argc, char*** argv, const SessionOptions& options)
      : mpi_(argc, argv), exceptions_(std::uncaught_exceptions()) {
    auto runtime = std::make_shared<engine::Runtime>();
    runtime->options = agreed_options(mpi_, options);
    if (mpi_.thread_level() <= ThreadLevel::funneled) runtime->only_thread = std::this_thread::get_id();
    auto [unattended, reason] = unattended_progress(mpi_);
    auto limits =
        base::WaitLimits::for_load(static_cast<unsigned>(mpi_.ranks_here()), mpi_.processors_here());
    runtime->processors = mpi_.processors_here();
    // Across machines nothing comes so soon.
    if (mpi_.ranks_here() != mpi_.size()) limits.spins = std::min(limits.spins, remote_spins);
    runtime->progress =
        std::make_shared<engine::Progress>(std::make_shared<base::SteadyClock>(), limits, unattended);
    if (mpi_.ranks_here() != mpi_.size()) runtime->progress->set_poke(MpiEnvironment::poke);
    runtime->log = base::Log(base::level_from(runtime->options.log_level),
                             fmt::format("rank {} of {}, {}", mpi_.rank(), mpi_.size(), base::host_name()));
    if (options.use_profile) runtime->profile = agreed_profile(mpi_, runtime->options, runtime->log);
    if (!runtime->options.link && !(runtime->profile && runtime->profile->remote))
      runtime->remote_link = probed_link(mpi_);
    runtime->many_threads = mpi_.thread_level() == ThreadLevel::multiple;
    const auto link = runtime->options.link;
    const bool shares = runtime->options.shared_memory && !link;
    auto sharer = shares ? transport::make_process_sharer(runtime->options.shared_limit) : nullptr;
    auto transport = mpi_.world();
    if (link) transport = make_shaped(std::move(transport), *link, std::make_shared<base::SteadyClock>());
    auto state = std::make_shared<engine::CommunicatorState>(std::move(runtime), std::move(transport));
    state->lay_out(std::move(sharer), link ? mpi_.rank() : mpi_.node());
    world_ = std::make_unique<Communicator>(std::move(state));
    info_ = {.mpi_library = mpi_.library(),
             .thread_level = std::string(name_of(mpi_.thread_level())),
             .initialized_mpi = mpi_.initialized_here(),
             .background_progress = unattended == engine::Unattended::thread,
             .progress_reason = std::move(reason)};
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    // An exception passes here. If not on every rank, then to finalize MPI would be to wait for ever: leave
    // that to the launcher, which ends the job when this process ends with a status that is not zero.
    if (std::uncaught_exceptions() <= exceptions_ || all_arrive()) return;
    mpi_.leave_open();
    static_cast<void>(world_.release());  // NOLINT(bugprone-unused-return-value): see above
  }

  Communicator& world() { return *world_; }

  const SessionInfo& info() const { return info_; }

 private:
  /// With the token, as the progress thread may be calling MPI.
  bool all_arrive() {
    const std::scoped_lock lock(world_->state().runtime().progress->token());
    return mpi_.all_arrive(engine::patience_while_unwinding);
  }

  MpiEnvironment mpi_;
  int exceptions_;
  SessionInfo info_;
  std::unique_ptr<Communicator> world_;  // goes first
};

Session::Session(int* argc, char*** argv, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(argc, argv, options)) {}

Session::~Session() = default;

Communicator& Session::world() {
  return impl_->world();
}

const SessionInfo& Session::info() const {
  return impl_->info();
}

void Session::abort(int status) {
  MpiEnvironment::abort(status);
}

}  // namespace tutti
