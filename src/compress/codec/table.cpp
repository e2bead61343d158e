#include <array>

#include "compress/codec/codecs.hpp"

namespace tutti::compress {
namespace {

constexpr std::array table{
    Entry{"fp16", "IEEE 754 binary16, to nearest even", "", make_fp16},
    Entry{"bf16", "the upper half of binary32, to nearest even", "", make_bf16},
    Entry{"int8", "block quantisation, as qgZ of ZeRO++",
          "block=256, rounding=nearest|stochastic, feedback=off", make_int8},
    Entry{"int4", "block quantisation, as qgZ of ZeRO++; with error feedback",
          "block=64, rounding=nearest|stochastic, feedback=on", make_int4},
    Entry{"fp8", "e4m3 of OCP OFP8 1.0, scaled by block",
          "block=256, rounding=nearest|stochastic, feedback=off", make_fp8},
    Entry{"ternary", "block quantisation; threshold of Li, Zhang, Liu, Ternary weight networks, 2016",
          "block=256, rounding=nearest|stochastic, feedback=on", make_ternary},
    Entry{"onebit",
          "Seide et al., 1-bit SGD, Interspeech 2014, by block; warm-up: Tang et al., 1-bit Adam, ICML 2021",
          "block=64, feedback=on, warmup=0", make_onebit},
    Entry{"qsgd", "Alistarh et al., QSGD, NeurIPS 2017, section 3.1", "bits=8, block=512", make_qsgd},
    Entry{"terngrad", "Wen et al., TernGrad, NeurIPS 2017, sections 3.1 to 3.3", "clip=2.5", make_terngrad},
    Entry{"natural", "Horvath et al., Natural compression, 2019", "rounding=stochastic|nearest, feedback=off",
          make_natural},
    Entry{"topk", "Stich et al., Sparsified SGD with memory, 2018; reuse: Ok-Topk, Li, Hoefler 2022",
          "density=0.01, values=fp32|bf16, reuse=0", make_topk},
    Entry{"blocktopk", "after Ok-Topk, Li, Hoefler, PPoPP 2022: sparse, with bounded volume",
          "density=0.01, block=8192, values=fp32|bf16", make_blocktopk},
    Entry{"dgc",
          "Lin et al., Deep Gradient Compression, ICLR 2018, sections 3.1 to 3.3 and the authors' code",
          "density=0.001, momentum=0.9, clip=0, warmup=0", make_dgc},
    Entry{"redsync", "Fang, Fu, Yang, Hsieh, RedSync, 2018, partly from memory",
          "density=0.001, small=128, large=4096, reuse=5, quantised=on|off", make_redsync},
    Entry{"randomk", "after Stich et al., Sparsified SGD with memory, 2018", "density=0.01, feedback=on|off",
          make_randomk},
    Entry{"powersgd", "Vogels, Karimireddy, Jaggi, PowerSGD, NeurIPS 2019", "rank=4, warmup=0",
          make_powersgd},
};

}  // namespace

std::span<const Entry> codecs() {
  return table;
}

}  // namespace tutti::compress
