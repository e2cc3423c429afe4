// Tables: every id in a table names something, names are not given twice, numbers are finite, formulas and expressions
// read, a parameter is cut soundly. The ops are structure.cpp's.
#include <cmath>
#include <optional>
#include <unordered_set>

#include "compiler/base/plan_limits.h"
#include "compiler/expr/element_program.h"
#include "compiler/expr/expr.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class TableVerifier {
 public:
  TableVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Run() -> void {
    SeedTensors();
    Heads();
    Groups();
    Parameters();
    SubVectors();
    Scalars();
    Values();
    TriggersAndHalts();
  }

 private:
  auto SeedTensors() -> void;
  auto Heads() -> void;
  auto Groups() -> void;
  auto Parameters() -> void;
  auto Formulas(const std::unordered_set<std::string_view>& rules) -> void;
  auto SubVectors() -> void;
  auto Scalars() -> void;
  auto Values() -> void;
  auto TriggersAndHalts() -> void;

  /// Asks that the table has the id. `owner()` names the row that refers to it.
  template <class Owner, class IdType, class T>
  auto ExpectId(const Owner& owner, IdType id, const IdVector<IdType, T>& table) -> void {
    if (!table.Has(id)) {
      findings_.Add("id-out-of-range"_rule, "{} names {} of {}", owner(), id.index, table.size());
    }
  }

  auto HasSoundCut(const Parameter& parameter) const -> bool;

  const Plan& plan_;
  Findings& findings_;
};

/// Checks that the tensors of the seed are written as parameters are, each once.
auto TableVerifier::SeedTensors() -> void {
  constexpr double MostElements = 0x1p56;
  const std::vector<SeedTensor>& tensors = plan_.seed.tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const SeedTensor& tensor = tensors[i];
    if (i > 0 && tensor.name <= tensors[i - 1].name) {
      findings_.Add("seed-order"_rule, "tensor {} of the seed comes after {}", tensor.name, tensors[i - 1].name);
    }
    double elements = 1;
    for (const int64_t dim : tensor.shape) {
      elements *= dim >= 1 ? static_cast<double>(dim) : MostElements + 1;
    }
    if (tensor.shape.empty() || elements > MostElements || !IsTypeOfSeed(tensor.dtype)) {
      findings_.Add("seed-tensor"_rule, "tensor {} of the seed is {}{}; expected f32, bf16 or f16, 1 to 2^56 elements",
                    tensor.name, ToText(tensor.dtype), ToText(tensor.shape));
    }
  }
}

auto TableVerifier::Heads() -> void {
  std::unordered_set<std::string_view> heads;
  const TargetHead* own = nullptr;
  for (const TargetHead& head : plan_.heads) {
    if (!heads.insert(head.name).second) {
      findings_.Add("duplicate-head"_rule, "two heads are named {}", head.name);
    }
    if (head.is_own && own != nullptr) {
      findings_.Add("two-own-heads"_rule, "heads {} and {} are both the model's own", own->name, head.name);
    }
    own = head.is_own ? &head : own;
  }
}

auto TableVerifier::Groups() -> void {
  for (const OptimizerGroup& group : plan_.groups) {
    if (!std::isfinite(group.weight_decay) || !std::isfinite(group.lr_scale)) {
      findings_.Add("not-finite"_rule, "group {} has weight decay {} and scale {}", group.name, group.weight_decay,
                    group.lr_scale);
    }
  }
}

/// Returns true if the parameter is not cut, or is cut along its rows or evenly along its columns, over axes whose
/// ranks share each matrix.
auto TableVerifier::HasSoundCut(const Parameter& parameter) const -> bool {
  const AxisSet sharing = Spread(plan_.mesh, AxesSharing(Shared::Matrices));
  std::optional<size_t> cut;
  for (size_t i = 0; i < NumAxes; ++i) {
    const Placement& placement = parameter.placement[i];
    if (placement == Placement{}) {
      continue;
    }
    const auto dim = static_cast<size_t>(placement.dim);
    if (placement.kind != PlacementKind::Shard || !sharing.Has(static_cast<Axis>(i)) || (cut && *cut != dim)) {
      return false;
    }
    cut = dim;
  }
  const size_t num_dims = parameter.shape.size();
  const auto is_even = [&] { return parameter.shape[1] % plan_.mesh.size(CutAxes(parameter, plan_.mesh)) == 0; };
  return !cut || (*cut < num_dims && (*cut == 0 || (num_dims == 2 && is_even())));
}

/// Asks that formulas copy tensors that exist, with as many indices as these have dims, and not themselves.
/// Requires: all init rules read.
auto TableVerifier::Formulas(const std::unordered_set<std::string_view>& rules) -> void {
  InitSources sources(plan_);
  const FindLoadedShape find_loaded = sources.FindLoaded();
  for (const Parameter& parameter : plan_.parameters) {
    if (rules.contains(parameter.init)) {
      const auto program = MakeElementProgram(
          *sources.Find(parameter.name), [&](std::string_view name) { return sources.Find(name); }, find_loaded);
      const std::string fault = program.ok() ? LengthFault(program.value) : program.errors.front().message;
      if (!fault.empty()) {
        findings_.Add("init-formula"_rule, "the init rule of {}, {:.200}: {}", parameter.name, parameter.init, fault);
      }
    }
  }
}

auto TableVerifier::Parameters() -> void {
  std::unordered_set<std::string_view> names;
  // Many parameters share a few rules: each text is read once.
  std::unordered_set<std::string_view> rules;
  std::unordered_set<std::string_view> formulas;
  names.reserve(static_cast<size_t>(plan_.parameters.size()));
  for (const ParameterId id : plan_.parameters.ids()) {
    const Parameter& parameter = plan_.parameters[id];
    if (!names.insert(parameter.name).second) {
      findings_.Add("duplicate-parameter"_rule, "two parameters are named {}", parameter.name);
    }
    if (!HasSoundCut(parameter)) {
      findings_.Add("parameter-cut"_rule,
                    "{}{} is placed as {}, expected rows, or columns that divide evenly, over ranks that share each "
                    "matrix",
                    parameter.name, ToText(parameter.shape), ToText(parameter.placement));
    }
    if (parameter.layer < -1 || parameter.layer >= MostLayers) {
      findings_.Add("layer-range"_rule, "{} is of layer {}", parameter.name, parameter.layer);
    }
    ExpectId([&] { return fmt::format("the group of parameter {}", parameter.name); }, parameter.group, plan_.groups);
    if (rules.contains(parameter.init)) {
      continue;
    }
    const auto rule = ParseExpr(parameter.init, ExprKind::Rule);
    // Everything known is put in: nothing is left to look up.
    const auto reduced = rule.ok() ? ReduceRule(rule.value, {}) : ExprResult<Expr>{{}, rule.errors};
    if (!reduced.ok()) {
      findings_.Add("init-rule"_rule, "the init rule of {} does not read: {}", parameter.name, parameter.init);
      continue;
    }
    rules.insert(parameter.init);
    if (!DistributionOf(reduced.value)) {
      formulas.insert(parameter.init);
    }
  }
  if (findings_.empty()) {
    Formulas(formulas);
  }
}

auto TableVerifier::SubVectors() -> void {
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    const auto owner = [&] { return fmt::format("sub-vector v{}", id.index); };
    ExpectId(owner, sub_vector.unit, plan_.units);
    ForEachSlice(sub_vector, [&](ValueId value) {
      if (value != ValueId{}) {
        ExpectId(owner, value, plan_.values);
      }
    });
    for (const Segment& segment : sub_vector.segments) {
      ExpectId(owner, segment.parameter, plan_.parameters);
    }
    if (sub_vector.axes == AxisSet{} && plan_.mesh.num_ranks() > 1) {
      findings_.Add("axes-empty"_rule, "{} names no axis", owner());
    }
  }
}

auto TableVerifier::Scalars() -> void {
  std::unordered_set<std::string_view> scalar_names;
  for (const Scalar& scalar : plan_.scalars) {
    if (!scalar_names.insert(scalar.name).second) {
      findings_.Add("duplicate-scalar"_rule, "two scalars are named {}", scalar.name);
    }
    if (scalar.head != HeadId{}) {
      ExpectId([&] { return fmt::format("scalar {}", scalar.name); }, scalar.head, plan_.heads);
    }
    if (scalar.kind == ScalarKind::Schedule && !ParseExpr(scalar.expression, ExprKind::Schedule).ok()) {
      findings_.Add("schedule-expression"_rule, "the expression of {} does not read: {}", scalar.name,
                    scalar.expression);
    }
  }
}

auto TableVerifier::Values() -> void {
  for (const ValueId id : plan_.values.ids()) {
    const auto owner = [&] { return fmt::format("value {}", findings_.Name(id)); };
    ExpectId(owner, plan_.values[id].buffer, plan_.buffers);
    const ValueRole role = plan_.values[id].role;
    switch (role.kind()) {
      case RoleKind::Other: break;
      case RoleKind::Parameter: ExpectId(owner, role.parameter(), plan_.parameters); break;
      case RoleKind::Gradient:
        if (role.gradient_of() != ParameterId{}) {
          ExpectId(owner, role.gradient_of(), plan_.parameters);
        }
        break;
      case RoleKind::Vector: ExpectId(owner, role.sub_vector(), plan_.sub_vectors); break;
    }
  }
}

auto TableVerifier::TriggersAndHalts() -> void {
  for (const Trigger& trigger : plan_.triggers) {
    if ((trigger.kind == TriggerKind::EverySteps) != (trigger.every > 0)) {
      findings_.Add("trigger"_rule, "trigger {} of section {} has every={}", ToText(trigger.kind),
                    ToText(trigger.section), trigger.every);
    }
    if (plan_.section(trigger.section).ops.empty()) {
      findings_.Add("trigger"_rule, "section {} has a trigger and no ops", ToText(trigger.section));
    }
  }
  for (const Halt& halt : plan_.halts) {
    ExpectId([] { return "a halt"; }, halt.scalar, plan_.scalars);
    if (halt.above < 0) {
      findings_.Add("halt-range"_rule, "a halt at a scalar above {}", halt.above);
    }
  }
}

}  // namespace

auto VerifyTables(const Plan& plan, Findings& findings) -> void { TableVerifier(plan, findings).Run(); }

}  // namespace shardc
