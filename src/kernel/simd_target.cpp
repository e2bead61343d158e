#include <algorithm>

#include "base/error.hpp"
#include "kernel/kernel.hpp"
#include "kernel/simd/job.hpp"
#include "kernel/simd/targets.hpp"
// After targets.hpp, which says what there is to choose from.
#include "hwy/targets.h"

namespace tutti::kernel {
namespace {

/// Bits of the instruction sets that build and machine have, best first. Highway answers with the forced one
/// once one is forced, so this is asked before.
const std::vector<std::int64_t>& available() {
  static const std::vector<std::int64_t> bits = hwy::SupportedAndGeneratedTargets();
  return bits;
}

}  // namespace

std::string_view simd_target() {
  return hwy::TargetName(running_target());
}

std::vector<std::string_view> simd_targets() {
  std::vector<std::string_view> names;
  for (const std::int64_t bit : available()) names.emplace_back(hwy::TargetName(bit));
  return names;
}

void force_simd_target(std::string_view name) {
  const std::vector<std::string_view> names = simd_targets();
  if (name.empty()) return hwy::SetSupportedTargetsForTest(0);
  const auto found = std::find(names.begin(), names.end(), name);
  base::require(found != names.end(),
                "this build and this machine have no instruction set '{}'; choose from {}", name,
                fmt::join(names, ", "));
  hwy::SetSupportedTargetsForTest(available()[static_cast<std::size_t>(found - names.begin())]);
}

}  // namespace tutti::kernel
