#include "compiler/passes/shard_units.h"

#include <map>
#include <tuple>

#include "compiler/plan/local_parameter.h"

namespace shardc {

auto MakeUnits(Plan& plan, const std::vector<UnitChoice>& choices) -> std::vector<ParameterHome> {
  std::map<ParameterId, UnitId> units;
  std::map<UnitId, DType> computes;
  for (const UnitChoice& choice : choices) {
    const UnitId unit = plan.units.Add(
        {.name = choice.name, .reshard_after_forward = choice.reshard_after_forward, .origin = choice.origin});
    computes[unit] = choice.compute;
    for (const ParameterId id : choice.parameters) {
      units[id] = unit;
    }
  }

  // By unit, whether it is trained, and the axes that it is cut over.
  std::map<std::tuple<UnitId, bool, uint8_t>, SubVectorId> sub_vectors;
  std::vector<ParameterHome> homes;
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const AxisSet cut = CutAxes(parameter, plan.mesh);
    const std::tuple key{units.at(id), parameter.trainable, cut.bits};
    const auto [found, fresh] = sub_vectors.try_emplace(key);
    if (fresh) {
      SubVector sub_vector;
      sub_vector.unit = units.at(id);
      sub_vector.compute = computes.at(units.at(id));
      sub_vector.trainable = parameter.trainable;
      sub_vector.cut = cut;
      found->second = plan.sub_vectors.Add(std::move(sub_vector));
    }
    const SubVectorId home = found->second;
    SubVector& sub_vector = plan.sub_vectors[home];
    const int64_t begin = RoundUp(sub_vector.length, SubVectorAlignment);
    sub_vector.length = begin + NumElements(LocalShape(parameter, plan.mesh));
    sub_vector.segments.push_back({.begin = begin, .end = sub_vector.length, .parameter = id, .counted_in_norm = true});
    homes.push_back({home, begin});
  }
  for (SubVector& sub_vector : plan.sub_vectors) {
    sub_vector.length = RoundUp(sub_vector.length, plan.mesh.size(sub_vector.axes) * SubVectorAlignment);
  }
  return homes;
}

}  // namespace shardc
