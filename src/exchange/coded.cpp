#include "exchange/coded.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "exchange/operation.hpp"

namespace tutti::exchange {

void hand_over(Communicator& communicator, const compress::Codec& codec, std::span<CodedState* const> states,
               std::span<const Run> mine) {
  if (!codec.feedback() || codec.algebra() != compress::Algebra::reencodable) return;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] == nullptr) continue;
    const std::span<float> residual = states[i]->owner.array(compress::residual_name);
    // Of each element one rank has something, the others nothing.
    communicator.allreduce(residual, Op::sum, {.name = "owner residuals"});
    std::vector<float> kept(residual.size());
    for (const Run& run : mine) {
      if (run.parameter != i) continue;
      std::copy_n(residual.begin() + static_cast<std::ptrdiff_t>(run.offset), run.count,
                  kept.begin() + static_cast<std::ptrdiff_t>(run.offset));
    }
    std::ranges::copy(kept, residual.begin());
  }
}

std::shared_ptr<engine::Pending> start_coded_allreduce(engine::CommunicatorState& communicator,
                                                       const CodedRequest& request) {
  // What ranks compare: the bucket and the codec's bytes; each message is compared by its length besides.
  const engine::Request call{.collective = schedule::Collective::allreduce,
                             .input = request.bucket.data(),
                             .output = request.bucket.data(),
                             .count = request.bucket.size(),
                             .type = DType::f32,
                             .op = request.op,
                             .name = "coded gradients",
                             .context = 1 + request.codec->max_bytes(request.bucket.size())};
  const std::size_t longest = communicator.runtime().options.message_bytes;
  return communicator.start(
      call,
      [&](engine::Lookout& lookout, std::uint32_t sequence,
          std::string label) -> std::unique_ptr<engine::Operation> {
        switch (request.codec->algebra()) {
          case compress::Algebra::linear:
            return make_by_sums(request, lookout, sequence, std::move(label), communicator);
          case compress::Algebra::gatherable:
            return make_by_gathering(request, lookout, sequence, std::move(label), longest);
          case compress::Algebra::reencodable: break;
        }
        return make_by_owners(request, lookout, sequence, std::move(label), longest);
      });
}

}  // namespace tutti::exchange
