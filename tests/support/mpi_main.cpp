// main() of tests that run under mpirun. Every rank runs the same Catch2 session into a buffer; at the end
// the failing ranks' reports are printed by rank 0, in rank order, equal ones once; a passing run prints one
// line. A watchdog in each process names the test case that hangs, prints what failed before, and ends the
// job.
#define CATCH_CONFIG_RUNNER
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <streambuf>
#include <string>
#include <thread>
#include <vector>

#include "base/host.hpp"
#include "base/options.hpp"
#include "support/catch.hpp"

namespace {

/// What Catch2 prints. The watchdog reads it while the test still runs, hence the lock.
class Captured : public std::streambuf {
 public:
  std::string text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

  void append(const std::string& text) {
    const std::scoped_lock lock(mutex_);
    text_ += text;
  }

 protected:
  int_type overflow(int_type c) override {
    const std::scoped_lock lock(mutex_);
    if (c != traits_type::eof()) text_ += traits_type::to_char_type(c);
    return traits_type::not_eof(c);
  }

  std::streamsize xsputn(const char* data, std::streamsize count) override {
    const std::scoped_lock lock(mutex_);
    text_.append(data, static_cast<std::size_t>(count));
    return count;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

std::chrono::seconds time_limit() {
  const auto text = tutti::base::environment("TUTTI_TEST_LIMIT");
  return std::chrono::seconds(text ? std::stoi(*text) : 100);
}

/// Ends the job when the tests take longer than TUTTI_TEST_LIMIT seconds (100 by default), saying where each
/// rank is.
class Watchdog {
 public:
  Watchdog(std::string who, const Captured& report)
      : who_(std::move(who)), report_(report), limit_(time_limit()), thread_([this] { watch(); }) {}

  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  ~Watchdog() {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void enter(const std::string& place) {
    const std::scoped_lock lock(mutex_);
    place_ = place;
  }

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit_, [this] { return stop_; })) return;
    // The console reporter is silent until something fails: what stands there is why the others wait.
    const std::string failed = report_.text();
    fmt::print(stderr, "watchdog: {} hangs in {} after {} s\n{}", who_, place_, limit_.count(),
               failed.empty() ? "" : fmt::format("it had failed before:\n{}\n", failed));
    std::fflush(stderr);
    lock.unlock();
    // Time for the other ranks to say where they are; MPI_Abort from this thread may not be allowed, so the
    // process just ends.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    _exit(86);
  }

  std::string who_;
  const Captured& report_;
  std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string place_ = "start";
  bool stop_ = false;
  std::thread thread_;
};

/// What the listener, which Catch2 constructs itself, tells main().
struct Observed {
  std::atomic<Watchdog*> watchdog{nullptr};
  std::atomic<unsigned long long> assertions{0};
  std::atomic<bool> ran_nothing{false};
};

Observed& observed() {
  static Observed instance;
  return instance;
}

#ifdef TUTTI_CATCH3
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

class Listener : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    if (Watchdog* dog = observed().watchdog.load()) dog->enter("test case '" + info.name + "'");
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    observed().assertions = stats.totals.assertions.total();
    observed().ran_nothing = stats.totals.testCases.total() == 0;
  }
};

CATCH_REGISTER_LISTENER(Listener)

struct Report {
  std::string text;
  std::vector<int> ranks;
  std::vector<std::string> who;
};

/// Reports of the failing ranks at rank 0, equal ones once, in the order of their first rank.
std::vector<Report> gather_reports(const std::string& report, const std::string& who, bool failed, int rank,
                                   int size) {
  constexpr int width = 128;
  std::array<char, width> mine{};
  who.copy(mine.data(), width - 1);
  std::vector<char> names(static_cast<std::size_t>(width) * static_cast<std::size_t>(size));
  MPI_Gather(mine.data(), width, MPI_CHAR, names.data(), width, MPI_CHAR, 0, MPI_COMM_WORLD);
  const int length = failed ? static_cast<int>(report.size()) : -1;
  std::vector<int> lengths(static_cast<std::size_t>(size));
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<Report> reports;
  if (rank != 0) {
    if (failed) MPI_Send(report.data(), length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
    return reports;
  }
  for (int r = 0; r < size; ++r) {
    const int n = lengths[static_cast<std::size_t>(r)];
    if (n < 0) continue;
    std::string text = report;
    if (r != 0) {
      text.resize(static_cast<std::size_t>(n));
      MPI_Recv(text.data(), n, MPI_CHAR, r, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    auto same = reports.begin();
    while (same != reports.end() && same->text != text) ++same;
    if (same == reports.end()) same = reports.insert(same, Report{text, {}, {}});
    same->ranks.push_back(r);
    same->who.emplace_back(names.data() + static_cast<std::size_t>(width) * static_cast<std::size_t>(r));
  }
  return reports;
}

/// True if everything passed and there was something to pass.
bool run_session(int argc, char** argv, Captured& captured) {
  std::streambuf* const out = std::cout.rdbuf(&captured);
  bool passed = false;
  try {
    passed = Catch::Session().run(argc, argv) == 0;
  } catch (const std::exception& error) {
    captured.append(fmt::format("exception outside a test case: {}\n", error.what()));
  }
  std::cout.rdbuf(out);
  if (observed().ran_nothing) captured.append("no test case ran: the filter matches none\n");
  return passed && !observed().ran_nothing;
}

/// Collective. The exit status of every rank.
int report_all(bool passed, const std::string& report, const std::string& who, int rank, int size) {
  for (const Report& each : gather_reports(report, who, !passed, rank, size))
    fmt::print("==== rank {} of {} failed ({}) ====\n{}\n", fmt::join(each.ranks, ", "), size,
               fmt::join(each.who, "; "), each.text);
  const int failed = passed ? 0 : 1;
  int any_failed = 0;
  MPI_Allreduce(&failed, &any_failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  const unsigned long long mine = observed().assertions;
  unsigned long long all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && any_failed == 0) fmt::print("{} ranks: all passed ({} assertions)\n", size, all);
  std::fflush(stdout);
  return any_failed;
}

}  // namespace

int main(int argc, char* argv[]) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int status = 1;
  {
    const std::string where = fmt::format("{}, pid {}", tutti::base::host_name(), tutti::base::process_id());
    Captured captured;
    Watchdog dog(fmt::format("rank {} of {} ({})", rank, size, where), captured);
    observed().watchdog = &dog;
    const bool passed = run_session(argc, argv, captured);
    dog.enter("the end, where it waits for the other ranks' reports");
    status = report_all(passed, captured.text(), where, rank, size);
    observed().watchdog = nullptr;
  }
  MPI_Finalize();
  return status;
}
