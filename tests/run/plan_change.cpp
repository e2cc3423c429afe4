#include "tests/run/plan_change.h"

#include <concepts>
#include <functional>
#include <iterator>

#include "compiler/base/devices.h"
#include "compiler/ops/op_facts.h"
#include "compiler/plan/text.h"

namespace shardc {

namespace {

using Random = std::mt19937_64;

auto Below(Random& random, size_t n) -> size_t { return static_cast<size_t>(random() % n); }
template <class T>
auto PickOne(Random& random, const std::vector<T>& items) -> T {
  return items[Below(random, items.size())];
}

struct OpPlace {
  SectionKind section;
  size_t index;
};

auto AllOps(const Plan& plan) -> std::vector<OpPlace> {
  std::vector<OpPlace> places;
  for (int s = 0; s < NumSections; ++s) {
    for (size_t i = 0; i < plan.section(static_cast<SectionKind>(s)).ops.size(); ++i) {
      places.push_back({static_cast<SectionKind>(s), i});
    }
  }
  return places;
}

/// Collects what may be changed in an op, each as a function that changes it and tells what it did.
using Choice = std::function<std::string()>;
struct ChoiceFinder {
  Plan& plan;
  Random& random;
  ChangeKind kind;
  std::vector<Choice> choices = {};

  auto Operand(std::string_view name, ValueId& id) -> void {
    if (kind != ChangeKind::Operand || !id.valid()) {
      return;
    }
    // Another value of the same type, so that shapes tell nothing.
    std::vector<ValueId> like;
    for (const ValueId other : plan.values.ids()) {
      if (other != id && plan.values[other].dtype == plan.values[id].dtype &&
          plan.values[other].shape == plan.values[id].shape) {
        like.push_back(other);
      }
    }
    if (!like.empty()) {
      choices.push_back([this, name, &id, other = PickOne(random, like)] {
        id = other;
        return fmt::format("{} is now {}", name, NameOf(plan, other));
      });
    }
  }
  auto In(std::string_view name, ValueId& id) -> void { Operand(name, id); }
  auto Out(std::string_view, ValueId&) -> void {}
  auto Over(std::string_view, ValueId&, ValueId&) -> void {}
  auto Acc(std::string_view name, ValueId&, ValueId& onto) -> void {
    Operand(name, onto);
    if (kind == ChangeKind::Flag && onto.valid()) {
      choices.push_back([name, &onto] {
        onto = {};
        return fmt::format("{} adds to nothing", name);
      });
    }
  }
  auto InOut(std::string_view name, ValueId& id) -> void { Operand(name, id); }
  auto Scratch(std::string_view, ValueId&) -> void {}
  auto Whole(std::string_view, BufferId&) -> void {}
  template <class T>
  auto Attr(std::string_view name, T& value) -> void {
    if constexpr (std::same_as<T, RankExpr>) {
      if (kind == ChangeKind::Sample) {
        choices.push_back([this, name, &value] {
          ChangeSample(value);
          return fmt::format("{} is now {}", name, ToText(value));
        });
      }
    } else if constexpr (std::same_as<T, AxisSet>) {
      if (kind == ChangeKind::Axes) {
        choices.push_back([this, name, &value] {
          value.bits = static_cast<uint8_t>(value.bits ^ (1U << Below(random, NumAxes)));
          return fmt::format("{} is now {}", name, ToText(value));
        });
      }
    } else if constexpr (std::same_as<T, bool>) {
      if (kind == ChangeKind::Flag) {
        choices.push_back([name, &value] {
          value = !value;
          return fmt::format("{} is now {}", name, value);
        });
      }
    } else if constexpr (std::is_arithmetic_v<T>) {
      if (kind == ChangeKind::Constant) {
        choices.push_back([this, name, &value] {
          value = Below(random, 2) == 0 ? static_cast<T>(value * 2) : static_cast<T>(value + 1);
          return fmt::format("{} is now {}", name, value);
        });
      }
    }
  }
  auto ChangeSample(RankExpr& sample) -> void {
    switch (Below(random, 5)) {
      case 0: sample.axis[Below(random, NumMeshAxes)] += 1; break;
      case 1: sample.axis[static_cast<size_t>(Axis::Dp)] = 0; break;
      case 2: sample.repeat += 1; break;
      case 3: sample.step += sample.step > 1 && Below(random, 2) == 0 ? -1 : 1; break;
      default: sample.base += 2; break;
    }
  }
};

auto ChangeOp(Plan& plan, ChangeKind kind, Random& random) -> std::optional<PlanChange> {
  const std::vector<OpPlace> places = AllOps(plan);
  for (int tries = 0; tries < 200; ++tries) {
    const OpPlace place = PickOne(random, places);
    Op& op = plan.section(place.section).ops[place.index];
    const std::string before = PrintOp(op, plan);
    ChoiceFinder finder{.plan = plan, .random = random, .kind = kind};
    VisitBody(op.body, [&](auto& body) { VisitFields(body, finder); });
    if (finder.choices.empty()) {
      continue;
    }
    const std::string what = finder.choices[Below(random, finder.choices.size())]();
    if (PrintOp(op, plan) == before) {
      return std::nullopt;
    }
    const UpdatePart update = FactsOf(op).update;
    const bool is_setting = update == UpdatePart::Apply || update == UpdatePart::Clip;
    return PlanChange{.kind = kind,
                      .what = fmt::format("{} op {} `{}`: {}", ToText(place.section), place.index, before, what),
                      .free = (kind == ChangeKind::Constant || kind == ChangeKind::Flag) && is_setting};
  }
  return std::nullopt;
}

/// Changes of the list of ops: their order, number, events and predicates.
auto ChangeList(Plan& plan, ChangeKind kind, Random& random) -> std::optional<PlanChange> {
  const OpPlace place = PickOne(random, AllOps(plan));
  std::vector<Op>& ops = plan.section(place.section).ops;
  const auto at = ops.begin() + static_cast<std::ptrdiff_t>(place.index);
  const std::string line = fmt::format("{} op {} `{}`", ToText(place.section), place.index, PrintOp(*at, plan));
  const auto change = [&](std::string_view what) {
    return PlanChange{.kind = kind, .what = fmt::format("{}: {}", line, what)};
  };
  if (kind == ChangeKind::Drop) {
    ops.erase(at);
    return change("is gone");
  }
  if (kind == ChangeKind::Duplicate) {
    Op again = *at;
    again.signals = {};
    ops.insert(at + 1, std::move(again));
    return change("runs twice");
  }
  if (kind == ChangeKind::Neighbours) {
    if (place.index + 1 == ops.size()) {
      return std::nullopt;
    }
    std::swap(at[0], at[1]);
    return change("runs after the next");
  }
  if (kind == ChangeKind::Wait) {
    if (at->waits.empty()) {
      return std::nullopt;
    }
    at->waits.erase(at->waits.begin() + static_cast<std::ptrdiff_t>(Below(random, at->waits.size())));
    return change("waits for one event less");
  }
  if (kind == ChangeKind::Stream) {
    const auto stream = static_cast<Stream>(Below(random, CountOf<Stream>()));
    if (stream == at->stream) {
      return std::nullopt;
    }
    at->stream = stream;
    return change(fmt::format("runs on {}", ToText(stream)));
  }
  // A predicate more, less, or the opposite.
  if (!at->when.always() && Below(random, 2) == 0) {
    at->when = {};
  } else if (!at->when.always()) {
    at->when.negated = !at->when.negated;
  } else {
    at->when = {.scalar = plan.ScalarOf(ScalarRole::NonFinite), .negated = Below(random, 2) == 0};
  }
  return change(fmt::format("now runs so: `{}`", PrintOp(*at, plan)));
}

auto ChangeTable(Plan& plan, ChangeKind kind, Random& random) -> std::optional<PlanChange> {
  const auto pick = [&](auto& table) {
    using IdType = std::remove_cvref_t<decltype(*table.ids().begin())>;
    return IdType{static_cast<int32_t>(Below(random, static_cast<size_t>(table.size())))};
  };
  if (kind == ChangeKind::BufferOffset) {
    const BufferId id = pick(plan.buffers);
    // Others are refused for their alignment alone.
    const int64_t by = FactsOf(plan.device).offset_alignment * PickOne<int64_t>(random, {-2, -1, 1, 2});
    plan.buffers[id].offset += by;
    return PlanChange{.kind = kind, .what = fmt::format("buffer {} lies {} bytes off", NameOf(plan, id), by)};
  }
  if (kind == ChangeKind::Placement || kind == ChangeKind::View) {
    const ValueId id = pick(plan.values);
    Value& value = plan.values[id];
    const std::string name = fmt::format("value {}", NameOf(plan, id));
    if (kind == ChangeKind::Placement) {
      Placement& placement = value.placement[Below(random, NumMeshAxes)];
      const Placement other = PickOne<Placement>(random, {Placement{}, Placement::Shard(0), Placement::Partial()});
      if (other == placement) {
        return std::nullopt;
      }
      placement = other;
      return PlanChange{.kind = kind, .what = name + ": another placement"};
    }
    switch (Below(random, 4)) {
      case 0: value.dtype = value.dtype == DType::F32 ? DType::I32 : DType::F32; break;
      case 1: value.offset.base += SizeOf(value.dtype) * PickOne<int64_t>(random, {-16, 1, 16}); break;
      case 2: value.offset.repeat = value.offset.repeat == 0 ? 64 : 0; break;
      default:
        if (value.shape.size() < 2 || value.shape[0] == value.shape[1]) {
          return std::nullopt;
        }
        std::swap(value.shape[0], value.shape[1]);
    }
    return PlanChange{.kind = kind,
                      .what = fmt::format("{}: now {}{} at {}", name, ToText(value.dtype), ToText(value.shape),
                                          ToText(value.offset))};
  }
  if (kind == ChangeKind::Segment) {
    const SubVectorId id = pick(plan.sub_vectors);
    SubVector& sub_vector = plan.sub_vectors[id];
    Segment& segment = sub_vector.segments[Below(random, sub_vector.segments.size())];
    std::string what;
    switch (Below(random, 6)) {
      case 0:
        segment.begin += 128;
        what = "begins later";
        break;
      case 1:
        segment.end -= 128;
        what = "ends earlier";
        break;
      case 2:
        segment.counted_in_norm = !segment.counted_in_norm;
        what = "another counted_in_norm";
        break;
      case 3:
        segment.parameter = pick(plan.parameters);
        what = "another parameter";
        break;
      case 4:
        sub_vector.cut = sub_vector.cut == AxisSet{} ? AxisSet::Of(Axis::Tp) : AxisSet{};
        what = "another cut";
        break;
      default:
        sub_vector.length += 128 * plan.mesh.size(sub_vector.axes);
        what = "longer";
        break;
    }
    return PlanChange{.kind = kind, .what = fmt::format("v{}: {}", id.index, what)};
  }
  const ParameterId id = pick(plan.parameters);
  Parameter& parameter = plan.parameters[id];
  PlanChange change{.kind = kind, .what = parameter.name};
  switch (Below(random, 5)) {
    case 0:
      parameter.trainable = !parameter.trainable;
      change.what += ": another trainable";
      break;
    case 1:
      SetPlacement(AxisSet::Of(Axis::Tp),
                   Placement::Shard(parameter.placement[static_cast<size_t>(Axis::Tp)] == Placement::Shard(0) ? 1 : 0),
                   parameter.placement);
      change.what += ": cut along another dim";
      break;
    case 2:
      parameter.init = "normal(0, 0.3)";
      change.what += ": another rule";
      change.free = true;
      break;
    case 3:
      parameter.layer += 1;
      change.what += ": another layer";
      break;
    default:
      if (parameter.shape.size() < 2 || parameter.shape[0] == parameter.shape[1]) {
        return std::nullopt;
      }
      std::swap(parameter.shape[0], parameter.shape[1]);
      change.what += ": transposed";
  }
  return change;
}

auto ChangeHeader(Plan& plan, Random& random) -> std::optional<PlanChange> {
  PlanChange change{.kind = ChangeKind::Header};
  const auto number = [&](std::string_view name, int64_t& value, bool free) {
    value += 1;
    change.what = fmt::format("{} is now {}", name, value);
    change.free = free;
  };
  switch (Below(random, 17)) {
    case 0: number("steps", plan.run.steps, true); break;
    case 1: number("tokens_per_step", plan.run.tokens_per_step, false); break;
    case 2: number("micro_batch", plan.run.micro_batch, false); break;
    case 3: number("accumulate", plan.run.accumulate, false); break;
    case 4: number("eval_batches", plan.run.eval_batches, false); break;
    case 5: number("vocab", plan.data.vocab, false); break;
    case 6: number("seq", plan.data.seq, false); break;
    case 7: number("eval_tokens", plan.data.eval_tokens, true); break;
    case 8:
      plan.data.seed += 1;
      change = {.kind = ChangeKind::Header, .what = "another data seed", .free = true};
      break;
    case 9:
      plan.run.init_seed += 1;
      change = {.kind = ChangeKind::Header, .what = "another init seed", .free = true};
      break;
    case 10: {
      OptimizerGroup& group = plan.groups[GroupId{0}];
      group.weight_decay += 0.1;
      change = {.kind = ChangeKind::Header, .what = "another weight decay", .free = true};
      break;
    }
    case 11: {
      auto entry = plan.model.begin();
      std::advance(entry, static_cast<std::ptrdiff_t>(Below(random, plan.model.size())));
      entry->second += "1";
      change.what = fmt::format("model {} is now {}", entry->first, entry->second);
      break;
    }
    case 12: {
      Trigger& trigger = plan.triggers[Below(random, plan.triggers.size())];
      if (trigger.kind != TriggerKind::EverySteps) {
        return std::nullopt;
      }
      number("an interval", trigger.every, true);
      break;
    }
    case 13: {
      const Trigger gone = plan.triggers[Below(random, plan.triggers.size())];
      std::erase(plan.triggers, gone);
      // Without its interval, a section still runs at the end.
      change = {.kind = ChangeKind::Header,
                .what = fmt::format("{} has no trigger {}", ToText(gone.section), ToText(gone.kind)),
                .free = gone.kind == TriggerKind::EverySteps};
      break;
    }
    case 14: {
      Scalar& scalar =
          plan.scalars[ScalarId{static_cast<int32_t>(Below(random, static_cast<size_t>(plan.scalars.size())))}];
      const bool scheduled = scalar.kind == ScalarKind::Schedule;
      if (scheduled) {
        scalar.expression = "0.5 * (" + scalar.expression + ")";
      } else {
        scalar.kind = scalar.kind == ScalarKind::State ? ScalarKind::Metric : ScalarKind::State;
      }
      change = {
          .kind = ChangeKind::Header, .what = fmt::format("scalar {} is another", scalar.name), .free = scheduled};
      break;
    }
    case 15: {
      const auto other = static_cast<size_t>(plan.run.optimizer) + 1;
      plan.run.optimizer = static_cast<Optimizer>(other % CountOf<Optimizer>());
      change.what = fmt::format("the optimizer is now {}", ToText(plan.run.optimizer));
      break;
    }
    default:
      if (plan.halts.empty()) {
        return std::nullopt;
      }
      number("a halt", plan.halts[0].above, true);
  }
  return change;
}

}  // namespace

auto ChangeOne(Plan& plan, ChangeKind kind, std::mt19937_64& random) -> std::optional<PlanChange> {
  switch (kind) {
    case ChangeKind::Sample:
    case ChangeKind::Operand:
    case ChangeKind::Flag:
    case ChangeKind::Constant:
    case ChangeKind::Axes: return ChangeOp(plan, kind, random);
    case ChangeKind::Neighbours:
    case ChangeKind::Stream:
    case ChangeKind::Predicate:
    case ChangeKind::Wait:
    case ChangeKind::Drop:
    case ChangeKind::Duplicate: return ChangeList(plan, kind, random);
    case ChangeKind::BufferOffset:
    case ChangeKind::Placement:
    case ChangeKind::View:
    case ChangeKind::Segment:
    case ChangeKind::Parameter: return ChangeTable(plan, kind, random);
    case ChangeKind::Header: return ChangeHeader(plan, random);
    case ChangeKind::Inserted:
    case ChangeKind::Moved:
    case ChangeKind::Overwritten:
    case ChangeKind::Triggers:
    case ChangeKind::Clamped:
    case ChangeKind::Phase:
    case ChangeKind::Doubled: return ChangeStructure(plan, kind, random);
  }
  return std::nullopt;
}

}  // namespace shardc
