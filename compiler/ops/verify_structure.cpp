// Structure: every id names something, every count is bounded, numbers are finite, repeats nest, an event is signalled
// once and waited for later, names are not given twice, predicates are agreed by all ranks.
#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_set>

#include "compiler/base/plan_limits.h"
#include "compiler/expr/element_program.h"
#include "compiler/expr/expr.h"
#include "compiler/ops/verify_internal.h"
#include "compiler/plan/init_rule.h"
#include "compiler/plan/local_parameter.h"
#include "compiler/plan/loops.h"

namespace shardc {

namespace {

/// A rank expression has one index of a pass, and so has the runtime.
constexpr int MostNested = 1;

/// Asks that the fields of one op are set and name what exists.
struct FieldChecker {
  const Plan& plan;
  Findings& findings;
  SectionKind section;
  size_t index;
  bool scheduled;

  template <class IdType, class T>
  auto Expect(std::string_view name, IdType id, const IdVector<IdType, T>& table) -> void {
    if (!table.Has(id)) {
      findings.AddOp(section, index, id.valid() ? "id-out-of-range"_rule : "field-unset"_rule,
                     "{} is {}, the plan has {} of its kind", name, id.index, table.size());
    }
  }
  auto In(std::string_view name, ValueId id) -> void { Expect(name, id, plan.values); }
  auto Out(std::string_view name, ValueId id) -> void { Expect(name, id, plan.values); }
  auto Over(std::string_view name, ValueId id, ValueId) -> void { Expect(name, id, plan.values); }
  auto Acc(std::string_view name, ValueId id, ValueId onto) -> void {
    Expect(name, id, plan.values);
    if (onto != ValueId{}) {
      Expect(name, onto, plan.values);
    }
  }
  auto InOut(std::string_view name, ValueId id) -> void { Expect(name, id, plan.values); }
  auto Scratch(std::string_view name, ValueId id) -> void {
    if (id != ValueId{} || scheduled) {
      Expect(name, id, plan.values);
    }
  }
  auto Whole(std::string_view name, BufferId id) -> void { Expect(name, id, plan.buffers); }
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::same_as<T, ScalarId>) {
      Expect(name, value, plan.scalars);
    } else if constexpr (std::same_as<T, SubVectorId>) {
      Expect(name, value, plan.sub_vectors);
    } else if constexpr (std::same_as<T, ParameterId>) {
      Expect(name, value, plan.parameters);
    } else if constexpr (std::same_as<T, HeadId>) {
      if (value != HeadId{}) {
        Expect(name, value, plan.heads);
      }
    } else if constexpr (std::same_as<T, double>) {
      if (!std::isfinite(value)) {
        findings.AddOp(section, index, "not-finite"_rule, "{} is {}", name, value);
      }
    } else if constexpr (std::same_as<T, AxisSet>) {
      // One rank alone has no axis to name, and a whole vocabulary is cut over none.
      if (value == AxisSet{} && plan.mesh.num_ranks() > 1 && name != "vocab_axes") {
        findings.AddOp(section, index, "axes-empty"_rule, "{} names no axis", name);
      }
    }
  }
};

class StructureVerifier {
 public:
  StructureVerifier(const Plan& plan, Findings& findings) : plan_(plan), findings_(findings) {}

  auto Header() -> bool;
  auto Tables() -> void;
  auto SeedTensors() -> void;
  auto Formulas(const std::unordered_set<std::string_view>& rules) -> void;
  auto Ops() -> void;
  auto Loops() -> void;
  auto Events() -> void;
  auto Predicates() -> void;

 private:
  /// `owner()` says whose id it is.
  template <class Owner, class IdType, class T>
  auto ExpectId(const Owner& owner, IdType id, const IdVector<IdType, T>& table) -> void {
    if (!table.Has(id)) {
      findings_.Add("id-out-of-range"_rule, "{} names {} of {}", owner(), id.index, table.size());
    }
  }

  auto HasSoundCut(const Parameter& parameter) const -> bool;

  const Plan& plan_;
  Findings& findings_;
  int64_t num_layers_ = 0;
};

/// Is it cut, if at all, along its rows or evenly along its columns, over axes whose ranks share each matrix?
auto StructureVerifier::HasSoundCut(const Parameter& parameter) const -> bool {
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

auto StructureVerifier::Header() -> bool {
  int64_t ranks = 1;
  for (const int64_t size : plan_.mesh.sizes) {
    if (size < 1 || size > MostRanks || (ranks *= size) > MostRanks) {
      findings_.Add("mesh-size"_rule, "mesh is {}; sizes are 1 or more, ranks {} at most",
                    fmt::join(plan_.mesh.sizes, " x "), MostRanks);
      return false;
    }
  }
  for (int i = NumMeshAxes; i < NumAxes; ++i) {
    const auto part = static_cast<Axis>(i);
    const int64_t size = plan_.mesh.size(part);
    if (size < 1 || plan_.mesh.size(WholeOf(part)) % size != 0) {
      findings_.Add("mesh-size"_rule, "{} is {}, which does not divide {} = {}", ToText(part), size,
                    ToText(WholeOf(part)), plan_.mesh.size(WholeOf(part)));
      return false;
    }
  }
  size_t ops = 0;
  for (const Section& section : plan_.sections) {
    ops += section.ops.size();
  }
  if (ops > static_cast<size_t>(MostOps)) {
    findings_.Add("too-many"_rule, "{} ops; plans have {} at most", ops, MostOps);
    return false;
  }
  if (plan_.scalars.size() > MostScalars) {
    findings_.Add("too-many"_rule, "{} scalars; plans have {} at most", plan_.scalars.size(), MostScalars);
    return false;
  }
  if (plan_.num_events < 0 || static_cast<size_t>(plan_.num_events) > ops) {
    findings_.Add("too-many"_rule, "{} events for {} ops", plan_.num_events, ops);
    return false;
  }
  if (plan_.Established(PassKind::Build)) {
    const RunSettings& run = plan_.run;
    const auto expect = [&](std::string_view name, int64_t value, int64_t least) {
      if (value < least || value > MostCount) {
        findings_.Add("setting-range"_rule, "{} is {}, expected {} to {}", name, value, least, MostCount);
      }
    };
    expect("run.steps", run.steps, 0);
    expect("run.log_every", run.log_every, 1);
    expect("run.tokens_per_step", run.tokens_per_step, 1);
    expect("run.micro_batch", run.micro_batch, 1);
    expect("run.accumulate", run.accumulate, 1);
    expect("run.eval_batches", run.eval_batches, 0);
    expect("run.threads", run.threads, 0);
    expect("run.compare_every", run.compare_every, 0);
    expect("run.checkpoint_keep", run.checkpoint_keep, 0);
    expect("data.eval_tokens", plan_.data.eval_tokens, 0);
    expect("data.vocab", plan_.data.vocab, 1);
    expect("data.seq", plan_.data.seq, 1);
    for (const TargetHead& head : plan_.heads) {
      expect(fmt::format("vocab of head {}", head.name), head.vocab, 1);
    }
  }
  return true;
}

/// Formulas copy what there is, with as many indices as it has dims, and not themselves.
/// Requires: all init rules read.
auto StructureVerifier::Formulas(const std::unordered_set<std::string_view>& rules) -> void {
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

/// Tensors of the seed: as parameters are, each once.
auto StructureVerifier::SeedTensors() -> void {
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
    if (tensor.shape.empty() || elements > MostElements ||
        (tensor.dtype != DType::F32 && tensor.dtype != DType::BF16)) {
      findings_.Add("seed-tensor"_rule, "tensor {} of the seed is {}{}; expected f32 or bf16, 1 to 2^56 elements",
                    tensor.name, ToText(tensor.dtype), ToText(tensor.shape));
    }
  }
}

auto StructureVerifier::Tables() -> void {
  SeedTensors();
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
  for (const OptimizerGroup& group : plan_.groups) {
    if (!std::isfinite(group.weight_decay) || !std::isfinite(group.lr_scale)) {
      findings_.Add("not-finite"_rule, "group {} has weight decay {} and scale {}", group.name, group.weight_decay,
                    group.lr_scale);
    }
  }
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
    } else {
      num_layers_ = std::max(num_layers_, parameter.layer + 1);
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
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const SubVector& sub_vector = plan_.sub_vectors[id];
    const auto owner = [&] { return fmt::format("sub-vector v{}", id.index); };
    ExpectId(owner, sub_vector.unit, plan_.units);
    for (const ValueId value :
         {sub_vector.shard, sub_vector.compute_copy, sub_vector.gradient, sub_vector.exp_avg, sub_vector.exp_avg_sq}) {
      if (value != ValueId{}) {
        ExpectId(owner, value, plan_.values);
      }
    }
    for (const Segment& segment : sub_vector.segments) {
      ExpectId(owner, segment.parameter, plan_.parameters);
    }
    if (sub_vector.axes == AxisSet{} && plan_.mesh.num_ranks() > 1) {
      findings_.Add("axes-empty"_rule, "{} names no axis", owner());
    }
  }
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

auto StructureVerifier::Ops() -> void {
  const bool scheduled = plan_.Established(PassKind::Schedule);
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    if (std::holds_alternative<std::monostate>(op.body)) {
      findings_.Add("op-empty"_rule, "{} op {} has no body", ToText(section), index);
      return;
    }
    FieldChecker checker{plan_, findings_, section, index, scheduled};
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, checker); });
    if (op.layer < -1 || op.layer >= num_layers_) {
      findings_.AddOp(section, index, "layer-range"_rule, "layer {} of {}", op.layer, num_layers_);
    }
    if (!op.when.always()) {
      checker.Expect("when", op.when.scalar, plan_.scalars);
    }
    if (op.signals != EventId{} && (op.signals.index < 0 || op.signals.index >= plan_.num_events)) {
      findings_.AddOp(section, index, "id-out-of-range"_rule, "signals event {} of {}", op.signals.index,
                      plan_.num_events);
    }
    for (const EventId event : op.waits) {
      if (event.index < 0 || event.index >= plan_.num_events) {
        findings_.AddOp(section, index, "id-out-of-range"_rule, "waits for event {} of {}", event.index,
                        plan_.num_events);
      }
    }
  });
}

auto StructureVerifier::Loops() -> void {
  for (size_t s = 0; s < NumSections; ++s) {
    const auto section = static_cast<SectionKind>(s);
    int depth = 0;
    size_t last = 0;
    for (size_t i = 0; i < plan_.sections[s].ops.size(); ++i) {
      const Op& op = plan_.sections[s].ops[i];
      if (LoopEdgeOf(op) == LoopEdge::Begin) {
        last = i;
        if (++depth > MostNested) {
          findings_.AddOp(section, i, "repeat-nesting"_rule, "a repeat inside another");
          return;
        }
        if (LoopCountOf(op) < 1 || LoopCountOf(op) > MostRepeats || !op.when.always()) {
          findings_.AddOp(section, i, "repeat-count"_rule, "a loop runs 1 to {} times and without predicate",
                          MostRepeats);
        }
      } else if (LoopEdgeOf(op) == LoopEdge::End && --depth < 0) {
        findings_.AddOp(section, i, "repeat-nesting"_rule, "no repeat is open");
        return;
      }
    }
    if (depth > 0) {
      findings_.AddOp(section, last, "repeat-nesting"_rule, "the repeat has no end");
    }
  }
}

/// A wait reaches back to a signal that stands above it in the same section, so that no cycle of waits exists.
auto StructureVerifier::Events() -> void {
  std::vector<int> signalled_in(static_cast<size_t>(plan_.num_events), -1);
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    for (const EventId event : op.waits) {
      if (signalled_in[static_cast<size_t>(event.index)] != static_cast<int>(section)) {
        findings_.AddOp(section, index, "event-order"_rule, "no op above in this section signals e{}", event.index);
      }
    }
    if (op.signals.valid() &&
        std::exchange(signalled_in[static_cast<size_t>(op.signals.index)], static_cast<int>(section)) != -1) {
      findings_.AddOp(section, index, "event-twice"_rule, "e{} is signalled above too", op.signals.index);
    }
  });
}

/// An op that writes plainly leaves bytes undefined where it is left out, as verify_section_run.cpp says, and those
/// that begin the state are verify_state.cpp's. Of the others, these may be left out.
static auto MayBeLeftOut(const Op& op) -> bool {
  const AccessList accesses = AccessesOf(op.body);
  return FactsOf(op).may_be_left_out || std::any_of(accesses.begin(), accesses.end(), [](const Access& access) {
           return access.kind != AccessKind::Read;
         });
}

/// Ranks that disagree on a predicate would run different ops. Schedules and state are the same on all ranks, flags are
/// if a control op writes them. Collectives run everywhere and always.
auto StructureVerifier::Predicates() -> void {
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    if (op.when.always()) {
      return;
    }
    const Scalar& scalar = plan_.scalars[op.when.scalar];
    if (IsCollective(op)) {
      findings_.AddOp(section, index, "collective-predicate"_rule, "a collective runs where {} {} allows alone",
                      ToText(scalar.kind), scalar.name);
    } else if (!MayBeLeftOut(op)) {
      findings_.AddOp(section, index, "predicate-op"_rule, "{} is never left out", ToText(op.kind()));
    } else if (scalar.kind == ScalarKind::Metric) {
      findings_.AddOp(section, index, "predicate-not-agreed"_rule, "the ranks do not agree on {} {}",
                      ToText(scalar.kind), scalar.name);
    }
  });
}

}  // namespace

auto VerifyStructure(const Plan& plan, Findings& findings) -> void {
  StructureVerifier verifier(plan, findings);
  if (!verifier.Header()) {
    return;
  }
  verifier.Tables();
  verifier.Ops();
  verifier.Loops();
}

auto VerifyPredicates(const Plan& plan, Findings& findings) -> void { StructureVerifier(plan, findings).Predicates(); }

auto VerifyEvents(const Plan& plan, Findings& findings) -> void { StructureVerifier(plan, findings).Events(); }

}  // namespace shardc
