#include "compiler/passes/shard_units.h"

#include <map>

namespace shardc {

auto MakeUnits(Plan& plan, const PassContext& context, const std::vector<UnitChoice>& choices)
    -> std::vector<ParameterHome> {
  std::map<ParameterId, UnitId> units;
  for (const UnitChoice& choice : choices) {
    const UnitId unit = plan.units.Add(
        {.name = choice.name, .reshard_after_forward = choice.reshard_after_forward, .origin = choice.origin});
    for (const ParameterId id : choice.parameters) {
      units[id] = unit;
    }
  }

  // By unit, and whether it is trained.
  std::map<std::pair<UnitId, bool>, SubVectorId> sub_vectors;
  std::vector<ParameterHome> homes;
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const std::pair key{units.at(id), parameter.trainable};
    if (!sub_vectors.contains(key)) {
      SubVector sub_vector;
      sub_vector.unit = key.first;
      sub_vector.compute = ComputeType(*context.recipe);
      sub_vector.trainable = key.second;
      sub_vectors[key] = plan.sub_vectors.Add(std::move(sub_vector));
    }
    const SubVectorId home = sub_vectors.at(key);
    SubVector& sub_vector = plan.sub_vectors[home];
    const int64_t begin = RoundUp(sub_vector.length, SubVectorAlignment);
    sub_vector.length = begin + parameter.num_elements();
    sub_vector.segments.push_back({.begin = begin, .end = sub_vector.length, .parameter = id, .counted_in_norm = true});
    homes.push_back({home, begin});
  }
  for (SubVector& sub_vector : plan.sub_vectors) {
    sub_vector.length = RoundUp(sub_vector.length, plan.mesh.size(sub_vector.axes) * SubVectorAlignment);
  }
  return homes;
}

}  // namespace shardc
