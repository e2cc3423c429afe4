#include "compiler/explain/more_ranks.h"

#include <algorithm>
#include <array>

#include "compiler/base/plan_limits.h"
#include "compiler/explain/recipe_keys.h"

namespace shardc {

/// Returns true if ranks along dp divide the batch of a step, or the recipe does not fix it.
static auto DivideBatch(const Plan& plan, int64_t dp) -> bool {
  const RecipeKeys keys(plan);
  int64_t divisor = plan.mesh.size(Axis::Replicate) * dp;
  for (const char* key : {"batch.micro", "batch.accumulate"}) {
    divisor *= keys[key].empty() ? 1 : std::stoll(keys[key]);
  }
  const std::string global = keys["batch.global"];
  return global.empty() || std::stoll(global) % divisor == 0;
}

/// Returns true if ranks along tp divide all that they have parts of.
static auto DivideModel(const Plan& plan, int64_t tp) -> bool {
  return std::ranges::all_of(std::array{"heads", "kv_heads", "ffn", "seq"}, [&](const char* size) {
    const auto found = plan.model.find(size);
    return found == plan.model.end() || std::stoll(found->second) % tp == 0;
  });
}

auto NeedsRefusedRanks(const Plan& plan, std::string_view key) -> bool {
  if (key != "mesh.dp" && key != "mesh.tp") {
    return false;
  }
  const Axis axis = key == "mesh.dp" ? Axis::Dp : Axis::Tp;
  Mesh mesh = plan.mesh;
  mesh.set_size(axis, 2 * mesh.size(axis));
  if (mesh.num_ranks() > MostRanks || !mesh.HostsAreBoxes()) {
    return true;
  }
  return axis == Axis::Dp ? !DivideBatch(plan, mesh.size(axis))
                          : !DivideModel(plan, mesh.size(axis)) || RecipeKeys(plan)["shard.gather_into"] == "host";
}

}  // namespace shardc
