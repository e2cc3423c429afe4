// Changes of what stands where: see ChangeStructure.
#include <utility>

#include "compiler/ops/op_facts.h"
#include "compiler/ops/rewrite.h"
#include "compiler/plan/text.h"
#include "tests/run/plan_change.h"

namespace shardc {

namespace {

using Random = std::mt19937_64;

auto Draw(Random& random, size_t n) -> size_t { return static_cast<size_t>(random() % n); }

/// A section by its number of ops, so that each op is as likely as every other.
auto DrawSection(const Plan& plan, Random& random) -> SectionKind {
  size_t ops = 0;
  for (const Section& section : plan.sections) {
    ops += section.ops.size();
  }
  size_t at = Draw(random, ops);
  int section = 0;
  for (; at >= plan.section(static_cast<SectionKind>(section)).ops.size(); ++section) {
    at -= plan.section(static_cast<SectionKind>(section)).ops.size();
  }
  return static_cast<SectionKind>(section);
}

auto InsertOp(Plan& plan, Random& random) -> std::optional<PlanChange> {
  const SectionKind from = DrawSection(plan, random);
  const SectionKind to = Draw(random, 2) == 0 ? from : DrawSection(plan, random);
  Op op = plan.section(from).ops[Draw(random, plan.section(from).ops.size())];
  op.signals = {};
  op.waits.clear();
  std::vector<Op>& ops = plan.section(to).ops;
  const size_t at = Draw(random, ops.size() + 1);
  const std::string line = PrintOp(op, plan);
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at), std::move(op));
  return PlanChange{.kind = ChangeKind::Inserted,
                    .what = fmt::format("`{}` of {} stands in {} at {} too", line, ToText(from), ToText(to), at)};
}

auto MoveOp(Plan& plan, Random& random) -> std::optional<PlanChange> {
  const SectionKind section = DrawSection(plan, random);
  std::vector<Op>& ops = plan.section(section).ops;
  const size_t from = Draw(random, ops.size());
  const size_t to = Draw(random, ops.size());
  Op op = std::move(ops[from]);
  const std::string line = PrintOp(op, plan);
  ops.erase(ops.begin() + static_cast<std::ptrdiff_t>(from));
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(to), std::move(op));
  return PlanChange{.kind = ChangeKind::Moved,
                    .what = fmt::format("{} op {} `{}` stands at {}", ToText(section), from, line, to)};
}

/// A result of some op lies where state, constants or samples lie.
auto Overwrite(Plan& plan, Random& random) -> std::optional<PlanChange> {
  std::vector<Op>& ops = plan.section(DrawSection(plan, random)).ops;
  Op& op = ops[Draw(random, ops.size())];
  const std::string before = PrintOp(op, plan);
  std::optional<PlanChange> change;
  ReplaceWrites(op.body, [&](ValueId& id) {
    std::vector<ValueId> like;
    for (const ValueId other : plan.values.ids()) {
      if (id.valid() && other != id && plan.values[other].dtype == plan.values[id].dtype &&
          plan.values[other].bytes() == plan.values[id].bytes() &&
          IsPersistent(plan.buffers[plan.values[other].buffer].arena)) {
        like.push_back(other);
      }
    }
    if (!change && !like.empty()) {
      id = like[Draw(random, like.size())];
      change =
          PlanChange{.kind = ChangeKind::Overwritten, .what = fmt::format("`{}` writes {}", before, NameOf(plan, id))};
    }
  });
  return change;
}

auto SwapTriggers(Plan& plan, Random& random) -> std::optional<PlanChange> {
  const size_t a = Draw(random, plan.triggers.size());
  const size_t b = Draw(random, plan.triggers.size());
  std::swap(plan.triggers[a], plan.triggers[b]);
  return PlanChange{.kind = ChangeKind::Triggers, .what = fmt::format("rows {} and {} change places", a, b)};
}

/// The place of a value, or the samples of a load, with a clamp or as 0 or 1.
auto Clamp(Plan& plan, Random& random) -> std::optional<PlanChange> {
  const ValueId id{static_cast<int32_t>(Draw(random, static_cast<size_t>(plan.values.size())))};
  RankExpr* place = &plan.values[id].offset;
  if (Draw(random, 4) == 0) {
    for (Op& op : plan.section(Draw(random, 2) == 0 ? SectionKind::Data : SectionKind::Eval).ops) {
      if (FactsOf(op).loads_samples) {
        place = const_cast<RankExpr*>(SampleLoadOf(op)->sample);
      }
    }
  }
  const int64_t high = place->base + std::max<int64_t>(place->repeat, 1) * static_cast<int64_t>(Draw(random, 3));
  if (Draw(random, 3) == 0) {
    place->equals = high;
  } else {
    place->clamp = Interval{place->base, high};
  }
  return PlanChange{.kind = ChangeKind::Clamped,
                    .what = fmt::format("{}, or a load, is at {}", NameOf(plan, id), ToText(*place))};
}

auto ChangePhase(Plan& plan, Random& random) -> std::optional<PlanChange> {
  const SectionKind section = DrawSection(plan, random);
  std::vector<Op>& ops = plan.section(section).ops;
  Op& op = ops[Draw(random, ops.size())];
  const auto phase = static_cast<Phase>(Draw(random, CountOf<Phase>()));
  if (phase == op.phase) {
    return std::nullopt;
  }
  op.phase = phase;
  return PlanChange{.kind = ChangeKind::Phase, .what = fmt::format("{} `{}`", ToText(section), PrintOp(op, plan))};
}

/// A sum over ranks is taken for a term of another one. Its readers read that.
auto DoubleSum(Plan& plan, Random& random) -> std::optional<PlanChange> {
  std::vector<Op>& ops = plan.section(Draw(random, 4) == 0 ? SectionKind::Eval : SectionKind::Step).ops;
  std::vector<size_t> sums;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (FactsOf(ops[i]).collective == CollectiveKind::AllReduce) {
      sums.push_back(i);
    }
  }
  if (sums.empty()) {
    return std::nullopt;
  }
  const size_t at = sums[Draw(random, sums.size())];
  const Collective sum = *CollectiveOf(ops[at]);
  const ValueId again = plan.values.Add(Value(plan.values[sum.to]));
  AxisSet axes = sum.axes;
  if (Draw(random, 2) == 0) {
    axes = Spread(plan.mesh, AxisSet::All());
  }
  SetPlacement(axes, Placement::Partial(), plan.values[sum.to].placement);
  Op op{.body = op::AllReduce{.x = sum.to, .y = again, .axes = axes}};
  op.stream = ops[at].stream;
  for (size_t i = at + 1; i < ops.size(); ++i) {
    ReplaceReads(ops[i].body, [&](ValueId& id) { id = id == sum.to ? again : id; });
  }
  for (SubVector& sub_vector : plan.sub_vectors) {
    sub_vector.gradient = sub_vector.gradient == sum.to ? again : sub_vector.gradient;
  }
  const std::string line = PrintOp(ops[at], plan);
  ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(at) + 1, std::move(op));
  return PlanChange{.kind = ChangeKind::Doubled,
                    .what = fmt::format("`{}` is summed over {} again", line, ToText(axes))};
}

}  // namespace

auto ChangeStructure(Plan& plan, ChangeKind kind, Random& random) -> std::optional<PlanChange> {
  switch (kind) {
    case ChangeKind::Inserted: return InsertOp(plan, random);
    case ChangeKind::Moved: return MoveOp(plan, random);
    case ChangeKind::Overwritten: return Overwrite(plan, random);
    case ChangeKind::Triggers: return SwapTriggers(plan, random);
    case ChangeKind::Clamped: return Clamp(plan, random);
    case ChangeKind::Phase: return ChangePhase(plan, random);
    case ChangeKind::Doubled: return DoubleSum(plan, random);
    default: return std::nullopt;
  }
}

}  // namespace shardc
