#include "compiler/passes/shard_units.h"

#include <map>
#include <unordered_map>

#include "compiler/expr/layer_choice.h"
#include "compiler/plan/local_parameter.h"

namespace shardc {

namespace {

enum class Side { Before, After, Both };

/// For each parameter outside the blocks: is it read before the first block op of `step`, after it, or both?
auto SidesOf(const Plan& plan) -> std::unordered_map<std::string, Side> {
  std::unordered_map<std::string, Side> sides;
  bool after = false;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (op.phase != Phase::Forward) {
      continue;
    }
    after |= op.layer >= 0;
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan.values[access.value];
      if (op.layer >= 0 || plan.buffers[value.buffer].category != Category::Parameters) {
        continue;
      }
      const Side side = after ? Side::After : Side::Before;
      const auto [found, fresh] = sides.try_emplace(value.name, side);
      found->second = fresh || found->second == side ? side : Side::Both;
    }
  }
  return sides;
}

auto UnitNameOf(const Parameter& parameter, const std::unordered_map<std::string, Side>& sides, bool any_both)
    -> std::string {
  if (parameter.layer >= 0) {
    return fmt::format("layers.{}", parameter.layer);
  }
  if (any_both) {
    return "root";
  }
  const auto side = sides.find(parameter.name);
  return side != sides.end() && side->second == Side::Before ? "embed" : "head";
}

/// A predicate decides for blocks; units outside keep what they gathered, as backward wants it at once. A plain bool
/// decides for all.
class ReshardRule {
 public:
  ReshardRule(const Condition& condition, const ModelSection& model) : for_others_(condition.text == "true") {
    const auto predicate = ParseExpr(condition.text, ExprKind::Predicate);
    CHECK(predicate.ok(), "check let the predicate `{}` pass", condition.text);
    auto blocks = LayersWhere(predicate.value, *model.layers, *model.hidden);
    CHECK(blocks.ok(), "check let the predicate `{}` pass", condition.text);
    for_blocks_ = std::move(blocks.value);
  }

  auto Holds(int64_t layer) const -> bool {
    return layer < 0 ? for_others_ : for_blocks_.at(static_cast<size_t>(layer));
  }

 private:
  bool for_others_;
  std::vector<bool> for_blocks_;
};

}  // namespace

auto MakeUnits(Plan& plan, const PassContext& context) -> std::vector<ParameterHome> {
  const ShardSection& shard = context.recipe->shard;
  const ReshardRule reshards(*shard.reshard_after_forward, context.recipe->model);
  const auto sides = SidesOf(plan);
  bool any_both = false;
  for (const auto& [name, side] : sides) {
    any_both |= side == Side::Both;
  }

  std::map<std::string, UnitId> units;
  // By unit, and whether each coordinate of tp has the whole of its parameters.
  std::map<std::pair<UnitId, bool>, SubVectorId> sub_vectors;
  std::vector<ParameterHome> homes;
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const std::string name = UnitNameOf(parameter, sides, any_both);
    auto unit = units.find(name);
    if (unit == units.end()) {
      unit =
          units
              .emplace(name,
                       plan.units.Add({.name = name,
                                       .reshard_after_forward = reshards.Holds(parameter.layer),
                                       .origin = OriginOf(shard.reshard_after_forward, "shard.reshard_after_forward")}))
              .first;
    }
    const bool tp_replicated = plan.mesh.size(Axis::Tp) > 1 && parameter.tp_dim < 0;
    const auto [place, fresh] = sub_vectors.try_emplace({unit->second, tp_replicated});
    if (fresh) {
      SubVector sub_vector;
      sub_vector.unit = unit->second;
      sub_vector.compute = ComputeType(*context.recipe);
      sub_vector.tp_replicated = tp_replicated;
      place->second = plan.sub_vectors.Add(std::move(sub_vector));
    }
    const SubVectorId home = place->second;
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
