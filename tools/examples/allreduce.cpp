// Averages a vector over all ranks. Build it against an installed tutti and start it with mpirun -n 4.
#include <cstdio>
#include <tutti/tutti.hpp>
#include <vector>

int main(int argc, char* argv[]) {
  tutti::Session session(&argc, &argv);
  std::vector<float> gradient(1000, static_cast<float>(session.world().rank()));
  session.world().allreduce(std::span(gradient), tutti::Op::average);
  if (session.world().rank() == 0)
    std::printf("average over %d ranks: %g\n", session.world().size(), static_cast<double>(gradient[999]));
}
