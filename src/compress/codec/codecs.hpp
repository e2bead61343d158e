#pragma once

#include <memory>

#include "compress/codec.hpp"

/// What the table is made of: a factory for each row, defined in the file that is named after it.
namespace tutti::compress {

std::unique_ptr<Codec> make_fp16(Options& options);
std::unique_ptr<Codec> make_bf16(Options& options);
std::unique_ptr<Codec> make_int8(Options& options);
std::unique_ptr<Codec> make_int4(Options& options);
std::unique_ptr<Codec> make_fp8(Options& options);
std::unique_ptr<Codec> make_ternary(Options& options);
std::unique_ptr<Codec> make_onebit(Options& options);
std::unique_ptr<Codec> make_qsgd(Options& options);
std::unique_ptr<Codec> make_terngrad(Options& options);
std::unique_ptr<Codec> make_natural(Options& options);
std::unique_ptr<Codec> make_topk(Options& options);
std::unique_ptr<Codec> make_blocktopk(Options& options);
std::unique_ptr<Codec> make_dgc(Options& options);
std::unique_ptr<Codec> make_redsync(Options& options);
std::unique_ptr<Codec> make_randomk(Options& options);
std::unique_ptr<Codec> make_powersgd(Options& options);

}  // namespace tutti::compress
