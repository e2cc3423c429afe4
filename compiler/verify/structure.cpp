// Structure: sizes of the mesh and numbers of ops are bounded, every id that an op has names something, repeats nest,
// an event is signalled once and waited for later, predicates are agreed by all ranks. The tables are
// tables.cpp's.
#include <algorithm>
#include <cmath>
#include <concepts>

#include "compiler/base/byte_limit.h"
#include "compiler/base/devices.h"
#include "compiler/base/plan_limits.h"
#include "compiler/keys/key_values.h"
#include "compiler/plan/exchange.h"
#include "compiler/plan/loops.h"
#include "compiler/verify/internal.h"

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
    if (id != ValueId{}) {
      Expect(name, id, plan.values);
    }
  }
  auto Whole(std::string_view name, BufferId id) -> void { Expect(name, id, plan.buffers); }
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::same_as<T, ScalarId>) {
      const auto& facts = FactsOf(plan.section(section).ops[index]).scalars;
      const auto* fact = std::ranges::find(facts, name, &ScalarFact::field);
      if (!value.valid() && fact != facts.end() && fact->is_optional) {
        return;
      }
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

  /// Returns false if the other parts of the verifier could not rely on the mesh, the device or the counts.
  auto Header() -> bool;
  auto Ops() -> void;
  auto Loops() -> void;
  auto Events() -> void;
  auto Predicates() -> void;

 private:
  /// Checks the ranges of numbers that the build pass has set.
  auto Settings() -> void;

  const Plan& plan_;
  Findings& findings_;
};

/// 19 years.
static constexpr double MostMinutes = 1e7;

auto StructureVerifier::Settings() -> void {
  const RunSettings& run = plan_.run;
  const auto expect = [&](std::string_view name, int64_t value, int64_t least, int64_t most = MostCount) {
    if (value < least || value > most) {
      findings_.Add("setting-range"_rule, "{} is {}, expected {} to {}", name, value, least, most);
    }
  };
  expect("run.steps", run.steps, 0);
  // A run of its own begins at the beginning.
  const int64_t most = plan_.seed.format == SeedFormat::Checkpoint && plan_.seed.is_set() ? MostCount : 0;
  expect("run.first_step", run.first_step, 0, most);
  expect("seed.updates", plan_.seed.updates, 0, most);
  expect("seed.steps_before", plan_.seed.steps_before, 0, most);
  for (const TokenSource& source : plan_.data.sources) {
    expect("source.first_sample", source.first_sample, 0, most);
  }
  for (const Parameter& parameter : plan_.parameters) {
    expect("parameter.first_update", parameter.first_update, 0, parameter.trainable ? plan_.seed.updates : 0);
  }
  if (!(run.max_minutes >= 0 && run.max_minutes <= MostMinutes)) {
    findings_.Add("setting-range"_rule, "run.max_minutes is {}, expected 0 to {}", run.max_minutes, MostMinutes);
  }
  expect("run.tokens_per_step", run.tokens_per_step, 1);
  expect("run.micro_batch", run.micro_batch, 1);
  expect("run.accumulate", run.accumulate, 1);
  expect("run.eval_batches", run.eval_batches, 0);
  expect("run.checkpoint_keep", run.checkpoint_keep, 0);
  expect("run.scan", run.scan_bytes, 0, MostByteLimit);
  expect("run.attention_workspace", run.attention_workspace, 0, MostByteLimit);
  if (!(run.peak_flops >= 0 && std::isfinite(run.peak_flops))) {
    findings_.Add("setting-range"_rule, "run.peak_flops is {}, expected a finite number from 0", run.peak_flops);
  }
  const auto expect_as_key = [&](std::string_view path, const auto& value) {
    if constexpr (std::is_arithmetic_v<std::remove_cvref_t<decltype(value)>>) {
      if (const auto range = RangeOf(path); range && !range->Holds(static_cast<double>(value))) {
        findings_.Add("setting-range"_rule, "{} is {}, expected {} to {}", path, value, range->low_text,
                      range->high_text);
      }
    }
  };
#define RUN_KEY(section, name, ...) expect_as_key(#section "." #name, run.name);
#include "schemas/recipe_keys.def"
  if (plan_.kernels == KernelSet::Reference && FactsOf(plan_.device).family != DeviceFamily::Cpu) {
    findings_.Add("kernel-set"_rule, "the plan is for {}, and its kernels are the reference ones, which run on CPUs",
                  ToText(plan_.device));
  }
  expect("data.eval_tokens", plan_.data.eval_tokens, 0);
  expect("data.eval_file_tokens", plan_.data.eval_file_tokens, 0);
  expect("data.eval_file_samples", plan_.data.eval_file_samples, 0);
  expect("data.vocab", plan_.data.vocab, 1);
  expect("data.seq", plan_.data.seq, 1);
  for (const TargetHead& head : plan_.heads) {
    expect(fmt::format("vocab of head {}", head.name), head.vocab, 1);
  }
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
  if (plan_.mesh.hosts < 1 || ranks % plan_.mesh.hosts != 0) {
    findings_.Add("mesh-size"_rule, "hosts is {}, which does not divide the {} ranks", plan_.mesh.hosts, ranks);
    return false;
  }
  if (!plan_.mesh.HostsAreBoxes()) {
    findings_.Add("mesh-hosts"_rule, "{} hosts have {} ranks each, so that groups of ranks are cut unevenly",
                  plan_.mesh.hosts, plan_.mesh.ranks_per_host());
    return false;
  }
  if (plan_.run.comm == Comm::Auto) {
    findings_.Add("comm-chosen"_rule, "comm is auto");
    return false;
  }
  if (!ServesFamily(plan_.run.comm, FactsOf(plan_.device).family)) {
    findings_.Add("comm-device"_rule, "comm is {}, and device is {}", ToText(plan_.run.comm), ToText(plan_.device));
    return false;
  }
  const int64_t ops = plan_.num_ops();
  if (ops > MostOps) {
    findings_.Add("too-many"_rule, "{} ops; plans have {} at most", ops, MostOps);
    return false;
  }
  if (plan_.scalars.size() > MostScalars) {
    findings_.Add("too-many"_rule, "{} scalars; plans have {} at most", plan_.scalars.size(), MostScalars);
    return false;
  }
  if (plan_.num_events < 0 || plan_.num_events > ops) {
    findings_.Add("too-many"_rule, "{} events for {} ops", plan_.num_events, ops);
    return false;
  }
  if (plan_.Established(PassKind::Build)) {
    Settings();
  }
  return true;
}

auto StructureVerifier::Ops() -> void {
  int64_t num_layers = 0;
  for (const Parameter& parameter : plan_.parameters) {
    num_layers = parameter.layer < MostLayers ? std::max(num_layers, parameter.layer + 1) : num_layers;
  }
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    if (std::holds_alternative<std::monostate>(op.body)) {
      findings_.Add("op-empty"_rule, "{} op {} has no body", ToText(section), index);
      return;
    }
    FieldChecker checker{plan_, findings_, section, index};
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, checker); });
    if (op.layer < -1 || op.layer >= num_layers) {
      findings_.AddOp(section, index, "layer-range"_rule, "layer {} of {}", op.layer, num_layers);
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

/// Asks that a wait reaches back to a signal above it in the same section, so that no cycle of waits exists.
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

/// Returns true for ops that a predicate may leave out. An op that writes plainly leaves bytes undefined if it is left
/// out (section_run.cpp), and ops that begin the state are judged in state.cpp.
static auto MayBeLeftOut(const Op& op, std::span<const Access> accesses) -> bool {
  return FactsOf(op).may_be_left_out ||
         std::ranges::any_of(accesses, [](const Access& access) { return access.kind != AccessKind::Read; });
}

/// Asks that all ranks agree on each predicate: otherwise they would run different ops. Schedules and state are the
/// same on all ranks, and so are flags that a control op writes. Collectives run everywhere and always.
auto StructureVerifier::Predicates() -> void {
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    if (op.when.always()) {
      return;
    }
    const Scalar& scalar = plan_.scalars[op.when.scalar];
    if (IsCollective(op)) {
      findings_.AddOp(section, index, "collective-predicate"_rule, "a collective runs where {} {} allows alone",
                      ToText(scalar.kind), scalar.name);
    } else if (!MayBeLeftOut(op, findings_.AccessesOf(section, index))) {
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
  VerifyTables(plan, findings);
  verifier.Ops();
  verifier.Loops();
}

auto VerifyPredicates(const Plan& plan, Findings& findings) -> void { StructureVerifier(plan, findings).Predicates(); }

auto VerifyEvents(const Plan& plan, Findings& findings) -> void { StructureVerifier(plan, findings).Events(); }

}  // namespace shardc
