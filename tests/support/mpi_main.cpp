// main() of tests that run under mpirun. Every rank runs the same Catch2 session into a buffer; at the end
// the failing ranks' reports are printed by rank 0, in rank order, equal ones once; a passing run prints one
// line. A watchdog in each process names the test case that hangs and ends the job.
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
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/host.hpp"
#include "base/options.hpp"
#include "support/catch.hpp"

namespace {

/// Ends the job when the tests take longer than TUTTI_TEST_LIMIT seconds (100 by default), saying where each
/// rank is.
class Watchdog {
 public:
  explicit Watchdog(int rank) : rank_(rank), thread_([this] { watch(); }) {}

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

  void enter(const std::string& test_case) {
    const std::scoped_lock lock(mutex_);
    test_case_ = test_case;
  }

 private:
  void watch() {
    const auto text = tutti::base::environment("TUTTI_TEST_LIMIT");
    const std::chrono::seconds limit(text ? std::stoi(*text) : 100);
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [this] { return stop_; })) return;
    fmt::print(stderr, "watchdog: rank {} ({}, pid {}) hangs in test case '{}' after {} s\n", rank_,
               tutti::base::host_name(), tutti::base::process_id(), test_case_, limit.count());
    std::fflush(stderr);
    lock.unlock();
    // Time for the other ranks to say where they are; MPI_Abort from this thread may not be allowed, so the
    // process just ends.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    _exit(86);
  }

  int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string test_case_ = "(none yet)";
  bool stop_ = false;
  std::thread thread_;
};

/// The one watchdog, reachable from the listener that Catch2 constructs.
std::atomic<Watchdog*>& watchdog() {
  static std::atomic<Watchdog*> instance{nullptr};
  return instance;
}

#ifdef TUTTI_CATCH3
class NameTestCase : public Catch::EventListenerBase {
 public:
  using Catch::EventListenerBase::EventListenerBase;
#else
class NameTestCase : public Catch::TestEventListenerBase {
 public:
  using Catch::TestEventListenerBase::TestEventListenerBase;
#endif
  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    if (Watchdog* dog = watchdog().load()) dog->enter(info.name);
  }
};
CATCH_REGISTER_LISTENER(NameTestCase)

/// Reports of the failing ranks, at rank 0.
std::map<std::string, std::vector<int>> gather_reports(const std::string& report, bool failed, int rank,
                                                       int size) {
  std::map<std::string, std::vector<int>> reports;
  const int length = failed ? static_cast<int>(report.size()) : -1;
  std::vector<int> lengths(static_cast<std::size_t>(size));
  MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
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
    reports[text].push_back(r);
  }
  return reports;
}

int run_session(int argc, char** argv, int rank, std::string& report) {
  std::ostringstream captured;
  std::streambuf* const out = std::cout.rdbuf(captured.rdbuf());
  int status = 1;
  try {
    status = Catch::Session().run(argc, argv);
  } catch (const std::exception& error) {
    captured << "exception outside a test case: " << error.what();
  }
  std::cout.rdbuf(out);
  report = captured.str();
  static_cast<void>(rank);
  return status;
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
    Watchdog dog(rank);
    watchdog() = &dog;
    std::string report;
    status = run_session(argc, argv, rank, report);
    const auto reports = gather_reports(fmt::format("{}", report), status != 0, rank, size);
    for (const auto& [text, ranks] : reports)
      fmt::print("==== rank {} of {} failed ====\n{}\n", fmt::join(ranks, ", "), size, text);
    int worst = 0;
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    status = worst;
    if (rank == 0 && status == 0)
      fmt::print("{} ranks: all passed\n{}", size,
                 report.substr(report.rfind("All tests") == std::string::npos ? report.size()
                                                                              : report.rfind("All tests")));
    std::fflush(stdout);
    watchdog() = nullptr;
  }
  MPI_Finalize();
  return status > 0 ? 1 : status;
}
