// Between real processes: the test forks, and its children speak over pipes until they share memory.
#include "transport/shared_memory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "transport/descriptor.hpp"
#include "tutti/error.hpp"

using namespace tutti;
using namespace tutti::transport;

namespace {

struct Pipe {
  Pipe() { REQUIRE(pipe(ends) == 0); }

  int ends[2]{};
};

/// Runs `body` as ranks of a node: this process is rank 0, children the others. Returns how many children
/// ended with a status other than 0.
int run_node(Rank ranks, const std::function<bool(const NodePlace&)>& body, bool& own) {
  std::vector<Pipe> up(static_cast<std::size_t>(ranks));
  std::vector<Pipe> down(static_cast<std::size_t>(ranks));
  const auto place_of = [&](Rank rank) {
    return NodePlace{.rank = rank, .ranks = ranks, .gather = [&, rank](const Record& mine) {
                       std::vector<Record> all(static_cast<std::size_t>(ranks));
                       const auto bytes = all.size() * sizeof(Record);
                       const auto r = static_cast<std::size_t>(rank);
                       if (rank != 0) {
                         CHECK(write(up[r].ends[1], mine.data(), sizeof mine) == sizeof mine);
                         std::size_t got = 0;
                         while (got < bytes) {
                           const auto n =
                               read(down[r].ends[0], reinterpret_cast<char*>(all.data()) + got, bytes - got);
                           if (n <= 0) _exit(9);
                           got += static_cast<std::size_t>(n);
                         }
                         return all;
                       }
                       all[0] = mine;
                       for (std::size_t other = 1; other < all.size(); ++other)
                         CHECK(read(up[other].ends[0], all[other].data(), sizeof(Record)) == sizeof(Record));
                       for (std::size_t other = 1; other < all.size(); ++other)
                         CHECK(write(down[other].ends[1], all.data(), bytes) == static_cast<ssize_t>(bytes));
                       return all;
                     }};
  };
  std::vector<pid_t> children;
  for (Rank rank = 1; rank < ranks; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(body(place_of(rank)) ? 0 : 1);
    children.push_back(child);
  }
  own = body(place_of(0));
  int failed = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0 ? 1 : 0;
  }
  return failed;
}

}  // namespace

TEST_CASE("processes share memory that is zeroed and has no name") {
  bool own = false;
  const int failed = run_node(
      4,
      [](const NodePlace& place) {
        const auto memory = make_process_sharer(0)->share(place, 8192);
        auto* const words = reinterpret_cast<volatile std::uint64_t*>(memory->data());
        bool good = memory->bytes() == 4 * 8192;
        for (std::size_t i = 0; i < memory->bytes() / 8; ++i) good = good && words[i] == 0;
        place.gather(Record{});
        words[static_cast<std::size_t>(place.rank) * 1024] = 100 + static_cast<std::uint64_t>(place.rank);
        place.gather(Record{});
        for (std::uint64_t r = 0; r < 4; ++r) good = good && words[r * 1024] == 100 + r;
        place.gather(Record{});
        return good;
      },
      own);
  CHECK(own);
  CHECK(failed == 0);
}

TEST_CASE("too little memory is an error on every rank that names the bytes") {
  bool own = false;
  const int failed = run_node(
      3,
      [](const NodePlace& place) {
        try {
          make_process_sharer(20'000)->share(place, 8192);
        } catch (const SystemError& error) {
          const std::string text = error.what();
          return text.find("24576 bytes") != text.npos && text.find("20000") != text.npos;
        }
        return false;
      },
      own);
  CHECK(own);
  CHECK(failed == 0);
}

TEST_CASE("a process that has ended is noticed") {
  bool own = false;
  const int failed = run_node(
      3,
      [](const NodePlace& place) {
        const PeerWatch watch(place);
        if (place.rank == 2) return true;
        for (int i = 0; i < 2000 && !watch.gone(); ++i) usleep(1000);
        return watch.gone() == Rank{2} || watch.gone() == Rank{1};
      },
      own);
  CHECK(own);
  CHECK(failed == 0);
}

TEST_CASE("a descriptor goes to who asks by the name, and to nobody else") {
  const DescriptorServer server;
  CHECK_FALSE(connect_to(server.name() + "x"));
  const Descriptor connection = connect_to(server.name());
  REQUIRE(connection);
  Pipe pipe;
  server.serve(pipe.ends[0], 1);
  const Descriptor received = receive_from(connection);
  REQUIRE(received);
  CHECK(write(pipe.ends[1], "x", 1) == 1);
  char byte = 0;
  CHECK(read(received.number(), &byte, 1) == 1);
  CHECK(byte == 'x');
}
