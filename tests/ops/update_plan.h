// A sub-vector for the tests of the update's kernels: four parameters in two groups, with gaps of padding, over two
// ranks.
#pragma once

#include "tests/support/kernel_fixture.h"

namespace shardc {

constexpr int64_t UpdateSlice = 640;
constexpr int64_t UpdateRanks = 2;

/// Segments (elements of the whole): 0 [0, 100), 1 [128, 733) across the cut at 640, 2 [768, 769), 3 [896, 1200).
inline auto AddUpdatePlan(Plan& plan) -> SubVectorId {
  plan.mesh.sizes = {1, UpdateRanks, 1};
  const GroupId decayed = plan.groups.Add({.name = "default", .weight_decay = 0.1, .lr_scale = 1});
  const GroupId scaled = plan.groups.Add({.name = "scaled", .weight_decay = 0, .lr_scale = 0.5});
  SubVector sub_vector;
  sub_vector.length = UpdateSlice * UpdateRanks;
  const int64_t bounds[][2] = {{0, 100}, {128, 733}, {768, 769}, {896, 1200}};
  for (const auto& [begin, end] : bounds) {
    const bool first_two = begin < 256;
    const ParameterId parameter =
        plan.parameters.Add({.name = "p", .shape = {end - begin}, .group = first_two ? decayed : scaled});
    sub_vector.segments.push_back({begin, end, parameter, true});
  }
  return plan.sub_vectors.Add(sub_vector);
}

}  // namespace shardc
