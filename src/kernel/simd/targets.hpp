#pragma once

// Included first by every source that is compiled once per instruction set, so that all of them choose from
// the same sets. Left out: sets that bring these loops nothing beyond their neighbour (they would double the
// time to compile), and sets with vectors of unknown length (the loops keep vectors in arrays).
#include "hwy/detect_targets.h"

#undef HWY_DISABLED_TARGETS
#if HWY_ARCH_X86
#if defined(HWY_AVX3_SPR)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR)
#elif defined(HWY_AVX3_ZEN4)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_AVX3_ZEN4)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#endif
#elif defined(HWY_SVE2_128)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#else
#define HWY_DISABLED_TARGETS 0
#endif
