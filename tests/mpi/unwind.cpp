// An exception that passes through the session of one rank only must end the job, and be told: run by ctest
// with what must come. Usage: unwind where, with where = call | work | all.
#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tutti/session.hpp"

int main(int argc, char** argv) {
  try {
    const std::string where = argc > 1 ? argv[1] : "";
    tutti::Session session(&argc, &argv);
    tutti::Communicator& world = session.world();
    std::vector<float> data(1000, 1.0F);
    const bool throws = where == "all" || world.rank() == 1;
    if (where == "work" && throws) {
      const tutti::Work work = world.allreduce_async(std::span(data), tutti::Op::sum);
      throw std::runtime_error("thrown beside work");
    }
    if (throws) throw std::runtime_error("thrown in a session");
    // Whoever called something else would be the first to fail.
    if (where == "work") std::this_thread::sleep_for(std::chrono::seconds(20));
    world.barrier();
    fmt::print("not reached\n");
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "caught: {}\n", error.what());
    return 3;
  }
}
