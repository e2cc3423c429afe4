#include "compiler/cost/more_ranks.h"

#include <algorithm>
#include <array>

#include "compiler/base/plan_limits.h"
#include "compiler/plan/header.h"

namespace shardc {

/// Returns true if ranks along dp divide the batch of a step, or the recipe does not fix it.
static auto DivideBatch(const Plan& plan, const PlanKeys& keys, int64_t dp) -> bool {
  const auto& batch = keys.batch;
  const int64_t divisor = plan.mesh.size(Axis::Replicate) * dp * batch.micro.value_or(1) * batch.accumulate.value_or(1);
  return !batch.global || *batch.global % divisor == 0;
}

/// Returns true if ranks along tp divide all that they have parts of.
static auto DivideModel(const Plan& plan, int64_t tp) -> bool {
  return std::ranges::all_of(std::array{"heads", "kv_heads", "ffn", "seq"},
                             [&](const char* size) { return ModelSize(plan, size).value_or(tp) % tp == 0; });
}

auto NeedsRefusedRanks(const Plan& plan, const PlanKeys& keys, std::string_view key) -> bool {
  if (key != "mesh.dp" && key != "mesh.tp") {
    return false;
  }
  const Axis axis = key == "mesh.dp" ? Axis::Dp : Axis::Tp;
  Mesh mesh = plan.mesh;
  mesh.set_size(axis, 2 * mesh.size(axis));
  if (mesh.num_ranks() > MostRanks || !mesh.HostsAreBoxes()) {
    return true;
  }
  return axis == Axis::Dp ? !DivideBatch(plan, keys, mesh.size(axis))
                          : !DivideModel(plan, mesh.size(axis)) || keys.shard.gather_into == GatherInto::Host;
}

}  // namespace shardc
