#include "compiler/ops/backward.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ops/emitter.h"
#include "compiler/ops/loss.h"
#include "compiler/plan/names.h"

namespace shardc {

namespace {

#define NotDifferentiable false
#define Fused false
#define Differentiable true
template <class T>
constexpr bool HasVjp = false;
#define OP(Type, mnemonic, differentiable, fields, doc) \
  template <>                                           \
  constexpr bool HasVjp<op::Type> = differentiable;
#include "schemas/ops.def"

class Differentiator : public VjpContext {
 public:
  Differentiator(Plan* plan, std::vector<Op>* backward)
      : plan_(*plan), emitter_(plan, backward, PassKind::Differentiate) {}

  auto MarkForward(const Op& op) -> void {
    bool wanted = false;
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan_.values[access.value];
      if (access.kind == AccessKind::Read) {
        if (const ValueId whole = WholeOf(access.value); wants_gradient_.contains(whole)) {
          wants_gradient_.insert(access.value);
          whole_of_[access.value] = whole;
        }
        if (const ParameterId id = value.role.parameter(); id.valid() && plan_.parameters[id].trainable) {
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

  /// Why there is no backward, if there is none.
  auto refusal() const -> const std::optional<std::string>& { return refusal_; }

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
        Refuse(fmt::format("{} has no VJP, and its result wants a gradient", Body::Mnemonic));
      }
    });
  }

  auto GradientOf(ValueId value) -> ValueId override {
    const auto found = gradient_.find(value);
    if (found == gradient_.end()) {
      Refuse(fmt::format("the loss does not depend on {}", NameOf(plan_, value)));
      return value;
    }
    return found->second;
  }
  auto NeedsGradient(ValueId value) -> bool override { return wants_gradient_.contains(value); }
  auto GradientTarget(ValueId value) -> Target override {
    const Value like = plan_.values[value];
    const bool parameter = like.role.parameter().valid();
    const ValueType type{parameter ? DType::F32 : like.dtype, like.shape};
    if (!NeedsGradient(value)) {
      // The op writes it whatever is asked for: bytes that no later op reads.
      const ValueId unread = NewGradient(like, type.dtype, Category::Workspace, ".unread");
      plan_.values[unread].role = {};
      return {unread, {}};
    }
    const auto found = gradient_.find(value);
    if (const auto whole = whole_of_.find(value); found == gradient_.end() && whole != whole_of_.end()) {
      return {PartOfGradient(value, whole->second), {}};
    }
    if (found != gradient_.end()) {
      const ValueId onto = found->second;
      const ValueId sum = emitter_.Alias(onto, type, GradientName(like));
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
    ExpectNone(like);
    const Value value = plan_.values[like];
    const ValueId gradient = emitter_.Alias(over, {value.dtype, value.shape}, GradientName(value));
    plan_.values[gradient].role = ValueRole::GradientOf({});
    plan_.values[gradient].placement = DualOf(value.placement);
    if (NeedsGradient(like)) {
      gradient_[like] = gradient;
    }
    return gradient;
  }
  auto NewTerm(ValueId value) -> ValueId override {
    const Value like = plan_.values[value];
    const ValueId term = NewGradient(like, like.dtype, Category::Activations, ".term");
    plan_.values[term].role = ValueRole::GradientOf({});
    return term;
  }
  auto Emit(OpBody body) -> void override { emitter_.Emit(std::move(body)); }
  auto Name(ValueId value) const -> std::string override { return NameOf(plan_, value); }
  auto Refuse(std::string why) -> void override {
    if (!refusal_) {
      refusal_ = std::move(why);
    }
  }

 private:
  auto ExpectNone(ValueId value) -> void {
    if (gradient_.contains(value)) {
      Refuse(fmt::format("{} is used twice, and its gradient can take one use", NameOf(plan_, value)));
    }
  }
  /// Where a gradient lies: cut as its value. Of what the ranks of an axis each have whole, they each have a term; and
  /// what is a sum of terms hands its gradient to each of them.
  auto DualOf(Placements placements) const -> Placements {
    for (size_t i = 0; i < NumMeshAxes; ++i) {
      Placement& over = placements[i];
      if (plan_.mesh.size(static_cast<Axis>(i)) > 1 && over.kind != PlacementKind::Shard) {
        over = over == Placement::Partial() ? Placement{} : Placement::Partial();
      }
    }
    return placements;
  }
  /// A value for the gradient of a value `like` this, placed as such a gradient is.
  auto NewGradient(const Value& like, DType dtype, Category category, std::string_view suffix = "") -> ValueId {
    const ValueId gradient = emitter_.New({dtype, like.shape}, category, GradientName(like) + std::string(suffix));
    plan_.values[gradient].placement = DualOf(like.placement);
    plan_.values[gradient].role = ValueRole::GradientOf(like.role.parameter());
    return gradient;
  }
  static auto GradientName(const Value& like) -> std::string { return like.name + ".grad"; }
  /// The value of which `value` is a part under a name of its own: what an op wrote on its buffer. Invalid if `value`
  /// is no such part.
  auto WholeOf(ValueId value) const -> ValueId {
    const auto found = written_.find(plan_.values[value].buffer);
    const bool is_part = found != written_.end() && found->second != value &&
                         plan_.values[found->second].bytes() > plan_.values[value].bytes();
    return is_part ? found->second : ValueId{};
  }
  /// The part of the gradient of `whole` that belongs to `part`. Requires: the parts make up the whole.
  auto PartOfGradient(ValueId part, ValueId whole) -> ValueId {
    const Value like = plan_.values[part];
    const Value all = plan_.values[whole];
    if (!gradient_.contains(whole)) {
      gradient_[whole] = NewGradient(all, all.dtype, Category::Activations);
    }
    RankExpr offset = plan_.values[gradient_.at(whole)].offset;
    offset.base += like.offset.base - all.offset.base;
    const ValueId gradient =
        emitter_.View(plan_.values[gradient_.at(whole)].buffer, offset, {like.dtype, like.shape}, GradientName(like));
    plan_.values[gradient].placement = DualOf(like.placement);
    plan_.values[gradient].role = ValueRole::GradientOf({});
    gradient_[part] = gradient;
    return gradient;
  }

  Plan& plan_;
  Emitter emitter_;
  std::optional<std::string> refusal_;
  std::unordered_set<ValueId> wants_gradient_;
  std::unordered_map<ValueId, ValueId> gradient_;
  /// What was last written on each buffer, and the wholes of the parts that were read.
  std::unordered_map<BufferId, ValueId> written_;
  std::unordered_map<ValueId, ValueId> whole_of_;
};

/// What the loss sum is divided by for the loss that is trained on, which is computed before other means of the sum.
/// The sum may have been made whole by an all_reduce on the way. Invalid where nothing divides it.
auto DivisorOf(const std::vector<Op>& ops, ValueId sum) -> ValueId {
  for (const Op& op : ops) {
    if (FactsOf(op).collective == CollectiveKind::AllReduce && CollectiveOf(op)->from == sum) {
      sum = CollectiveOf(op)->to;
    }
    if (const auto quotient = QuotientOf(op); quotient && quotient->dividend == sum) {
      return quotient->divisor;
    }
  }
  return {};
}

auto Writes(const Op& op, ValueId value) -> bool {
  const AccessList accesses = AccessesOf(op.body);
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& access) { return access.kind != AccessKind::Read && access.value == value; });
}

/// Carries EmitBackward out.
class BackwardWriter {
 public:
  BackwardWriter(Plan* plan, const std::vector<Op>& ops, std::vector<Op>* result)
      : ops_(ops), result_(*result), differentiator_(plan, result), last_sums_(LastLossSums(ops)) {}

  auto Run() -> std::optional<std::string> {
    size_t end_of_forward = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      differentiator_.MarkForward(ops_[i]);
      end_of_forward = ops_[i].phase == Phase::Forward ? i + 1 : end_of_forward;
    }
    for (size_t i = 0; i < end_of_forward; ++i) {
      const Op& op = ops_[i];
      result_.push_back(op);
      if (op.phase == Phase::Forward) {
        pending_.push_back(&op);
        if (const auto loss = LossOf(op)) {
          AfterLoss(*loss);
        }
      }
    }
    while (!pending_.empty()) {
      BackwardOfLast();
    }
    result_.insert(result_.end(), ops_.begin() + static_cast<std::ptrdiff_t>(end_of_forward), ops_.end());
    return differentiator_.refusal();
  }

 private:
  auto BackwardOfLast() -> void {
    differentiator_.Backward(*pending_.back());
    pending_.pop_back();
  }
  /// The backward of a chunk of the loss, back to the product that made its logits.
  auto AfterLoss(const LossOp& loss) -> void {
    const ValueId sum = last_sums_.at(loss.loss);
    ValueId& divisor = divisors_[sum];
    divisor = divisor.valid() ? divisor : DivisorOf(ops_, sum);
    if (!divisor.valid()) {
      differentiator_.Refuse(fmt::format("nothing divides the loss sum {}", differentiator_.Name(sum)));
      return;
    }
    differentiator_.Seed(loss.loss, divisor);
    for (bool at_logits = false; !at_logits && !pending_.empty();) {
      at_logits = Writes(*pending_.back(), loss.logits);
      BackwardOfLast();
    }
  }

  const std::vector<Op>& ops_;
  std::vector<Op>& result_;
  Differentiator differentiator_;
  std::unordered_map<ValueId, ValueId> last_sums_;
  std::unordered_map<ValueId, ValueId> divisors_;
  /// Forward ops whose backward is still to come.
  std::vector<const Op*> pending_;
};

}  // namespace

auto EmitBackward(Plan* plan, const std::vector<Op>& ops, std::vector<Op>* result) -> std::optional<std::string> {
  return BackwardWriter(plan, ops, result).Run();
}

}  // namespace shardc
