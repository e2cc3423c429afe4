// Emits the backward ops.
//
// Needs: forward ops in `step`, whose loss sums are divided by counts. Gives: a gradient for every trainable parameter.
//   1. walk forward: which values depend on a trainable parameter
//   2. behind each chunk of the loss, its backward and that of its logits: they die before those of the next chunk live
//   3. behind the last forward op, walk the others backward, calling each op's VJP; contributions to one gradient
//      accumulate in its bytes. What reads the metrics comes last.
//   4. what depends on no trainable parameter gets no gradient: ops that would only serve one are left out, and where
//      an op writes one beside others (that of a frozen norm's weight), it goes to workspace that nothing reads
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ops/emitter.h"
#include "compiler/ops/loss.h"
#include "compiler/passes/pass.h"

namespace shardc {

namespace {

#define NotDifferentiable false
#define Differentiable true
template <class T>
constexpr bool HasVjp = false;
#define OP(Type, mnemonic, differentiable, fields, doc) \
  template <>                                           \
  constexpr bool HasVjp<op::Type> = differentiable;
#include "schemas/ops.def"
#undef NotDifferentiable
#undef Differentiable

class Differentiator : public VjpContext {
 public:
  Differentiator(Plan* plan, std::vector<Op>* backward)
      : plan_(*plan), emitter_(plan, backward, PassKind::Differentiate) {
    for (const Parameter& parameter : plan->parameters) {
      if (parameter.trainable) {
        trainable_.insert(parameter.name);
      }
    }
  }

  auto MarkForward(const Op& op) -> void {
    bool wanted = false;
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan_.values[access.value];
      if (access.kind == AccessKind::Read) {
        if (const ValueId whole = WholeOf(access.value); wants_gradient_.contains(whole)) {
          wants_gradient_.insert(access.value);
          whole_of_[access.value] = whole;
        }
        if (plan_.buffers[value.buffer].category == Category::Parameters && trainable_.contains(value.name)) {
          wants_gradient_.insert(access.value);
        }
        wanted |= wants_gradient_.contains(access.value);
        continue;
      }
      written_[value.buffer] = access.value;
      if (wanted) {
        wants_gradient_.insert(access.value);
      }
    }
  }

  auto Seed(ValueId loss, ValueId count) -> void { gradient_[loss] = count; }

  auto Backward(const Op& op) -> void {
    const bool reached = [&] {
      for (const Access& access : AccessesOf(op.body)) {
        if (access.kind != AccessKind::Read && gradient_.contains(access.value)) {
          return true;
        }
      }
      return false;
    }();
    if (!reached) {
      return;
    }
    emitter_.set_phase(Phase::Backward);
    emitter_.set_layer(op.layer);
    emitter_.set_origin(op.origin);
    VisitBody(op.body, [&](const auto& body) {
      using Body = std::remove_cvref_t<decltype(body)>;
      if constexpr (HasVjp<Body>) {
        Vjp(body, *this);
      } else {
        CHECK(false, "{} has no VJP but its result wants a gradient", Body::Mnemonic);
      }
    });
  }

  auto plan() -> Plan& override { return plan_; }
  auto GradientOf(ValueId value) -> ValueId override {
    const auto found = gradient_.find(value);
    CHECK(found != gradient_.end(), "%{} {} has no gradient", value.index, plan_.values[value].name);
    return found->second;
  }
  auto NeedsGradient(ValueId value) -> bool override { return wants_gradient_.contains(value); }
  auto GradientTarget(ValueId value) -> Target override {
    const Value like = plan_.values[value];
    const bool parameter = plan_.buffers[like.buffer].category == Category::Parameters;
    const ValueType type{parameter ? DType::F32 : like.dtype, like.shape};
    if (!NeedsGradient(value)) {
      // The op writes it whatever is asked for: room that no later op reads.
      return {NewGradient(like, type.dtype, Category::Workspace, ".unread"), {}};
    }
    const auto found = gradient_.find(value);
    if (const auto whole = whole_of_.find(value); found == gradient_.end() && whole != whole_of_.end()) {
      return {PartOfGradient(value, whole->second), {}};
    }
    if (found != gradient_.end()) {
      const ValueId onto = found->second;
      const ValueId sum = emitter_.Alias(onto, type, like.name + std::string(GradientSuffix));
      plan_.values[sum].placement = plan_.values[onto].placement;
      gradient_[value] = sum;
      return {sum, onto};
    }
    const ValueId fresh = NewGradient(like, type.dtype, parameter ? Category::Gradients : Category::Activations);
    gradient_[value] = fresh;
    return {fresh, {}};
  }
  auto PassGradient(ValueId value, ValueId gradient) -> void override {
    if (!NeedsGradient(value)) {
      return;
    }
    const auto found = gradient_.find(value);
    if (found == gradient_.end()) {
      gradient_[value] = gradient;
      return;
    }
    const Value sum = plan_.values[found->second];
    const ValueId added = emitter_.Alias(found->second, {sum.dtype, sum.shape}, sum.name);
    plan_.values[added].placement = sum.placement;
    Emit(op::Add{.a = gradient, .b = found->second, .y = added});
    gradient_[value] = added;
  }
  auto GradientOver(ValueId like, ValueId over) -> ValueId override {
    CHECK(!gradient_.contains(like), "%{} has a gradient already", like.index);
    const Value value = plan_.values[like];
    const ValueId gradient = emitter_.Alias(over, {value.dtype, value.shape}, value.name + std::string(GradientSuffix));
    plan_.values[gradient].placement = DualOf(value.placement);
    if (NeedsGradient(like)) {
      gradient_[like] = gradient;
    }
    return gradient;
  }
  auto NewTerm(ValueId value) -> ValueId override {
    const Value like = plan_.values[value];
    return NewGradient(like, like.dtype, Category::Activations, ".term");
  }
  auto Emit(OpBody body) -> void override { emitter_.Emit(std::move(body)); }

 private:
  /// Where a gradient lies: cut as its value. Of what the ranks of tp each have whole, they each have a term; and what
  /// is a sum of terms hands its gradient to each of them. Over the data axes the vectors of units say that: shard.cpp.
  auto DualOf(Placements placements) const -> Placements {
    Placement& over_tp = placements[static_cast<size_t>(Axis::Tp)];
    if (plan_.mesh.size(Axis::Tp) > 1 && over_tp.kind != PlacementKind::Shard) {
      over_tp = over_tp == Placement::Partial() ? Placement{} : Placement::Partial();
    }
    return placements;
  }
  /// Room for a gradient of what is `like` this, placed as such.
  auto NewGradient(const Value& like, DType dtype, Category category, std::string_view suffix = "") -> ValueId {
    const ValueId gradient =
        emitter_.New({dtype, like.shape}, category, fmt::format("{}{}{}", like.name, GradientSuffix, suffix));
    plan_.values[gradient].placement = DualOf(like.placement);
    return gradient;
  }
  /// What an op wrote on the buffer of `value`, where that is a stretch of it under a name of its own; invalid else.
  auto WholeOf(ValueId value) const -> ValueId {
    const auto found = written_.find(plan_.values[value].buffer);
    const bool stretch = found != written_.end() && found->second != value &&
                         plan_.values[found->second].bytes() > plan_.values[value].bytes();
    return stretch ? found->second : ValueId{};
  }
  /// The same stretch of the gradient of the whole. Requires: the stretches make up the whole.
  auto PartOfGradient(ValueId part, ValueId whole) -> ValueId {
    const Value like = plan_.values[part];
    const Value all = plan_.values[whole];
    if (!gradient_.contains(whole)) {
      gradient_[whole] = NewGradient(all, all.dtype, Category::Activations);
    }
    RankExpr offset = plan_.values[gradient_.at(whole)].offset;
    offset.base += like.offset.base - all.offset.base;
    const ValueId gradient = emitter_.View(plan_.values[gradient_.at(whole)].buffer, offset, {like.dtype, like.shape},
                                           like.name + std::string(GradientSuffix));
    plan_.values[gradient].placement = DualOf(like.placement);
    CHECK(gradient_.emplace(part, gradient).second, "%{} has a gradient already", part.index);
    return gradient;
  }

  Plan& plan_;
  Emitter emitter_;
  std::unordered_set<std::string> trainable_;
  std::unordered_set<ValueId> wants_gradient_;
  std::unordered_map<ValueId, ValueId> gradient_;
  /// What was last written on each buffer, and the wholes of the stretches that were read.
  std::unordered_map<BufferId, ValueId> written_;
  std::unordered_map<ValueId, ValueId> whole_of_;
};

/// What the loss sum is divided by for the loss that is trained on, which is computed before other means of the sum.
/// The sum may have been made whole by an all_reduce on the way.
auto DivisorOf(const std::vector<Op>& ops, ValueId sum) -> ValueId {
  for (const Op& op : ops) {
    if (const auto* whole = op.As<op::AllReduce>(); whole != nullptr && whole->x == sum) {
      sum = whole->y;
    }
    if (const auto* divide = op.As<op::Divide>(); divide != nullptr && divide->a == sum) {
      return divide->b;
    }
  }
  CHECK(false, "nothing divides the loss sum %{}", sum.index);
}

auto Writes(const Op& op, ValueId value) -> bool {
  const AccessList accesses = AccessesOf(op.body);
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& access) { return access.kind != AccessKind::Read && access.value == value; });
}

}  // namespace

auto Differentiate(Plan plan, PassContext&) -> ErrorOr<Plan> {
  const std::vector<Op> forward = std::move(plan.section(SectionKind::Step).ops);
  std::vector<Op>& ops = plan.section(SectionKind::Step).ops;
  ops.clear();
  Differentiator differentiator(&plan, &ops);
  size_t end_of_forward = 0;
  for (size_t i = 0; i < forward.size(); ++i) {
    differentiator.MarkForward(forward[i]);
    end_of_forward = forward[i].phase == Phase::Forward ? i + 1 : end_of_forward;
  }
  const auto last_sums = LastLossSums(forward);
  std::unordered_map<ValueId, ValueId> divisors;

  std::vector<const Op*> pending;
  for (size_t i = 0; i < end_of_forward; ++i) {
    const Op& op = forward[i];
    ops.push_back(op);
    if (op.phase != Phase::Forward) {
      continue;
    }
    pending.push_back(&op);
    if (const auto loss = LossOf(op)) {
      const ValueId sum = last_sums.at(loss->loss);
      ValueId& divisor = divisors[sum];
      divisor = divisor.valid() ? divisor : DivisorOf(forward, sum);
      differentiator.Seed(loss->loss, divisor);
      // Back to the product that made the logits.
      for (bool at_logits = false; !at_logits; pending.pop_back()) {
        differentiator.Backward(*pending.back());
        at_logits = Writes(*pending.back(), loss->logits);
      }
    }
  }
  for (; !pending.empty(); pending.pop_back()) {
    differentiator.Backward(*pending.back());
  }
  ops.insert(ops.end(), forward.begin() + static_cast<std::ptrdiff_t>(end_of_forward), forward.end());
  return plan;
}

}  // namespace shardc
