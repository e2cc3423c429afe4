// What the parts of the verifier share. Each part looks at one concern and adds its findings.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/ops/op_facts.h"
#include "compiler/ops/ops.h"
#include "compiler/ops/parts.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/names.h"
#include "compiler/verify/access_table.h"

namespace shardc {

/// Findings of one verification, capped, the work it may still do, and what its parts share.
class Findings {
 public:
  explicit Findings(const Plan& plan) : plan_(plan), told_(plan) {}
  /// Makes findings about the parts of a plan, which name the ops of the plan itself. Both outlive the findings.
  Findings(const PlanInParts& parts, const Plan& whole) : plan_(parts.plan), told_(whole), origins_(&parts.origins) {}

  template <class... Args>
  auto Add(PlanRule rule, fmt::format_string<Args...> format, Args&&... args) -> void {
    Push(fmt::format("{} [{}]", fmt::format(format, std::forward<Args>(args)...), rule.name()));
  }
  template <class... Args>
  auto AddOp(SectionKind section, size_t index, PlanRule rule, fmt::format_string<Args...> format, Args&&... args)
      -> void {
    Push(fmt::format("{}: {} [{}]", OpLine(section, index), fmt::format(format, std::forward<Args>(args)...),
                     rule.name()));
  }
  auto Push(std::string finding) -> void {
    // The walk meets a finding once per iteration that it follows (3) and once per rank (2): one of them is kept.
    if (!full() && std::find(list_.begin(), list_.end(), finding) == list_.end()) {
      list_.push_back(std::move(finding));
    }
  }
  /// Returns a shortened `step op 12 "compute matmul ..."`.
  auto OpLine(SectionKind section, size_t index) const -> std::string;
  /// Returns the name that the plan's text has for it: "logits", "$logits".
  template <class IdType>
  auto Name(IdType id) const -> std::string {
    return Names().Text(id);
  }
  auto full() const -> bool { return list_.size() >= Most; }
  auto empty() const -> bool { return list_.empty(); }
  auto list() && -> std::vector<std::string> { return std::move(list_); }

  /// Returns AccessesOf(op.body) of an op of the plan. Requires: each op has a body.
  auto AccessesOf(SectionKind section, size_t index) -> std::span<const Access> {
    if (!accesses_) {
      accesses_.emplace(plan_);
    }
    return accesses_->Of(section, index);
  }

  /// Counts steps of work; false once a plan has used up what plans may use. Bounds hostile plans.
  auto Spend(size_t steps) -> bool;

 private:
  static constexpr size_t Most = 50;
  static constexpr int64_t MostWork = 100'000'000;

  auto Names() const -> const PlanNames&;

  const Plan& plan_;
  /// The plan whose ops are named, and the indices of these ops; null where they are those of `plan_`.
  const Plan& told_;
  const decltype(PlanInParts::origins)* origins_ = nullptr;
  /// Worked out for the first finding.
  mutable std::optional<PlanNames> names_;
  /// Worked out for the first part that asks.
  std::optional<AccessTable> accesses_;
  std::vector<std::string> list_;
  int64_t work_left_ = MostWork;
};

/// Returns true if both values are the same bytes of the same buffer.
auto SameBytes(const Plan& plan, ValueId a, ValueId b) -> bool;

/// Returns the byte range of a value at one point, [begin, end) from the start of its buffer.
auto RangeOf(const Value& value, const RankPoint& point) -> Interval;

/// Returns the smallest and the largest result of `expr` over all ranks of the mesh, repeat indices below `repeats` and
/// steps up to `steps`; nothing if a sum leaves 62 bits.
auto BoundsOf(const RankExpr& expr, const Mesh& mesh, int64_t repeats, int64_t steps)
    -> std::optional<std::pair<int64_t, int64_t>>;

/// Walks the ops of a section as they run: `visit.Run(index, repeat, count)` for each; round a loop `visit.Enter()` and
/// `visit.Exit()`, and for each iteration `visit.Begin(repeat_index)` and `visit.End(end_index)`. A loop runs
/// its indices 0, 1 and the last: offsets are affine in the index, so what holds for these holds between. Run and End
/// return false to stop. Requires: nesting is sound.
template <class Visitor>
auto WalkSection(const std::vector<Op>& ops, Visitor& visit) -> void {
  struct Loop {
    size_t begin;
    int64_t count;
    int64_t repeat;
  };
  std::vector<Loop> loops;
  for (size_t i = 0; i < ops.size(); ++i) {
    const LoopEdge edge = LoopEdgeOf(ops[i]);
    if (edge == LoopEdge::Begin) {
      loops.push_back({i, LoopCountOf(ops[i]), 0});
      visit.Enter();
      visit.Begin(i);
    } else if (edge == LoopEdge::End) {
      Loop& loop = loops.back();
      if (!visit.End(i)) {
        return;
      }
      const int64_t next = loop.repeat == 0 ? 1 : loop.count - 1;
      if (next > loop.repeat && next < loop.count) {
        loop.repeat = next;
        i = loop.begin;
        visit.Begin(i);
      } else {
        visit.Exit();
        loops.pop_back();
      }
    } else if (!visit.Run(i, loops.empty() ? 0 : loops.back().repeat, loops.empty() ? 1 : loops.back().count)) {
      return;
    }
  }
}

/// Calls `function` with every op of every section: (section, index, op).
template <class Function>
auto ForEachOp(const Plan& plan, Function&& function) -> void {
  for (size_t s = 0; s < NumSections; ++s) {
    const std::vector<Op>& ops = plan.sections[s].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      function(static_cast<SectionKind>(s), i, ops[i]);
    }
  }
}

// The parts, in the order in which they run. The first that finds something ends the verification: the others rely on
// what it proves, and would say under other labels what follows from it.
auto VerifyStructure(const Plan& plan, Findings& findings) -> void;
/// Verifies the tables, as a part of VerifyStructure.
auto VerifyTables(const Plan& plan, Findings& findings) -> void;
auto VerifySources(const Plan& plan, Findings& findings) -> void;
auto VerifyMemory(const Plan& plan, Findings& findings) -> void;
auto VerifySegments(const Plan& plan, Findings& findings) -> void;
auto VerifyOps(const Plan& plan, Findings& findings) -> void;
auto VerifyPredicates(const Plan& plan, Findings& findings) -> void;
auto VerifySections(const Plan& plan, Findings& findings) -> void;
auto VerifyState(const Plan& plan, Findings& findings) -> void;
auto VerifySaves(const Plan& plan, Findings& findings) -> void;
auto VerifyGathers(const Plan& plan, Findings& findings) -> void;
auto VerifyRoles(const Plan& plan, Findings& findings) -> void;
auto VerifyTokens(const Plan& plan, Findings& findings) -> void;
auto VerifyPlacements(const Plan& plan, Findings& findings) -> void;
auto VerifySamples(const Plan& plan, Findings& findings) -> void;
auto VerifyDocuments(const Plan& plan, Findings& findings) -> void;
auto VerifyAdapters(const Plan& plan, Findings& findings) -> void;
auto VerifyHeader(const Plan& plan, Findings& findings) -> void;
auto VerifyScalars(const Plan& plan, Findings& findings) -> void;
auto VerifyUpdate(const Plan& plan, Findings& findings) -> void;
auto VerifyTriggers(const Plan& plan, Findings& findings) -> void;
auto VerifyOffsets(const Plan& plan, Findings& findings) -> void;
auto VerifyLives(const Plan& plan, Findings& findings) -> void;
auto VerifyEvents(const Plan& plan, Findings& findings) -> void;
auto VerifyOrder(const Plan& plan, Findings& findings) -> void;
auto VerifyBackward(const Plan& plan, Findings& findings) -> void;
auto VerifyRecipe(const Plan& plan, Findings& findings) -> void;

}  // namespace shardc
