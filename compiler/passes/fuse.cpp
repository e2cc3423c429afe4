// One op in the place of several, in fewer passes over memory, on devices whose rows ask for it.
//
// Needs: the ops of `step` and `eval`, in their order. Gives: plans of the same values, but for those that no op needs
// any more, in fewer ops (compiler/ops/parts.h says of which plain ops each fused one is made):
//   1. a down projection's weight gradient comes after swiglu_backward, which gives swiglu's result once more, so that
//      the result is not kept since the forward
//   2. a residual addition directly after the product of its branch becomes part of the product
//   3. another one directly before an rms_norm becomes part of the norm
//   4. the ropes of q and k run as one, at the place of either
//   5. a loss and its gradient directly after it run as one
#include <algorithm>
#include <optional>
#include <span>

#include "compiler/base/id_lists.h"
#include "compiler/ops/emitter.h"
#include "compiler/ops/op_facts.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/pass.h"

namespace shardc {

namespace {

/// x + branch = sum, in place or not.
struct Addition {
  ValueId x;
  ValueId branch;
  ValueId sum;
};

auto AdditionOf(const Op& op) -> std::optional<Addition> {
  if (FactsOf(op).meaning != Meaning::Sum) {
    return std::nullopt;
  }
  const AccessList accesses = AccessesOf(op.body);
  return Addition{accesses[0].value, accesses[1].value, accesses[2].value};
}

/// Knows where values and buffers are used in a list of ops.
class Uses {
 public:
  Uses(const Plan& plan, const std::vector<Op>& ops) : plan_(plan) {
    IdLists<ValueId, size_t>::Entries of_values;
    IdLists<BufferId, size_t>::Entries touches;
    IdLists<BufferId, size_t>::Entries writes;
    constexpr size_t OfOp = 5;
    of_values.reserve(OfOp * ops.size());
    touches.reserve(OfOp * ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      for (const Access& access : AccessesOf(ops[i].body)) {
        const BufferId buffer = plan.values[access.value].buffer;
        of_values.emplace_back(access.value, i);
        touches.emplace_back(buffer, i);
        if (access.kind != AccessKind::Read) {
          writes.emplace_back(buffer, i);
        }
      }
    }
    of_values_ = IdLists(of_values);
    IdLists<BufferId, ValueId>::Entries values_on;
    for (const ValueId id : plan.values.ids()) {
      if (!Of(id).empty()) {
        values_on.emplace_back(plan.values[id].buffer, id);
      }
    }
    values_on_ = IdLists(values_on);
    touches_ = IdLists(touches);
    writes_ = IdLists(writes);
  }

  /// Returns the ops that read or write a value, in order.
  auto Of(ValueId id) const -> std::span<const size_t> { return of_values_[id]; }
  /// Returns true if no op after `index` uses another value of the buffer that has the value's bytes.
  auto IsAloneAfter(ValueId id, size_t index) const -> bool {
    return std::ranges::all_of(values_on_[plan_.values[id].buffer],
                               [&](ValueId other) { return other == id || Of(other).back() <= index; });
  }
  /// Returns true if no op in (after, before) reads or writes the bytes of the value's buffer.
  auto IsUntouched(ValueId id, size_t after, size_t before) const -> bool {
    return IsFree(touches_, id, after, before);
  }
  /// Returns true if no op in (after, before) writes the bytes of the value's buffer.
  auto IsUnwritten(ValueId id, size_t after, size_t before) const -> bool { return IsFree(writes_, id, after, before); }

 private:
  using ByBuffer = IdLists<BufferId, size_t>;

  auto IsFree(const ByBuffer& uses, ValueId id, size_t after, size_t before) const -> bool {
    const auto own = uses[plan_.values[id].buffer];
    const auto next = std::ranges::upper_bound(own, after);
    return next == own.end() || *next >= before;
  }

  const Plan& plan_;
  IdLists<ValueId, size_t> of_values_;
  IdLists<BufferId, ValueId> values_on_;
  ByBuffer touches_;
  ByBuffer writes_;
};

/// Rewrites the ops of one section. A rewrite looks at each op in turn, and may replace it and those near it.
class SectionFuser {
 public:
  SectionFuser(Plan* plan, std::vector<Op>* ops) : plan_(*plan), ops_(*ops) {}

  auto Run() -> void {
    for (const auto rewrite : {&SectionFuser::ComputeSwigluAgain, &SectionFuser::AddInProduct, &SectionFuser::AddInNorm,
                               &SectionFuser::PairRopes, &SectionFuser::JoinLoss}) {
      uses_.emplace(plan_, ops_);
      is_dropped_.assign(ops_.size(), false);
      for (size_t i = 0; i < ops_.size(); ++i) {
        if (!is_dropped_[i]) {
          (this->*rewrite)(i);
        }
      }
      std::vector<Op> kept;
      kept.reserve(ops_.size());
      for (size_t i = 0; i < ops_.size(); ++i) {
        if (!is_dropped_[i]) {
          kept.push_back(std::move(ops_[i]));
        }
      }
      ops_ = std::move(kept);
    }
  }

 private:
  auto Replace(size_t index, OpBody body) -> void {
    ops_[index].body = std::move(body);
    ops_[index].made_by = PassKind::Fuse;
  }
  auto Drop(size_t index) -> void { is_dropped_[index] = true; }
  /// Returns the op before `index` that is still there, of the same phase, if there is such an op.
  auto Before(size_t index) const -> std::optional<size_t> {
    return index > 0 && !is_dropped_[index - 1] && ops_[index - 1].phase == ops_[index].phase ? std::optional(index - 1)
                                                                                              : std::nullopt;
  }

  auto ComputeSwigluAgain(size_t index) -> void;
  auto AddInProduct(size_t index) -> void;
  auto AddInNorm(size_t index) -> void;
  auto PairRopes(size_t index) -> void;
  auto JoinLoss(size_t index) -> void;

  Plan& plan_;
  std::vector<Op>& ops_;
  std::optional<Uses> uses_;
  std::vector<bool> is_dropped_;
};

auto SectionFuser::ComputeSwigluAgain(size_t index) -> void {
  const auto* backward = ops_[index].As<op::SwigluBackward>();
  if (backward == nullptr || uses_->Of(backward->dy).back() != index) {
    return;
  }
  // The swiglu of these operands: the forward's, or the one that recompute emitted again.
  size_t swiglu = index;
  ValueId y;
  for (const size_t i : uses_->Of(backward->gate)) {
    const auto* forward = ops_[i].As<op::Swiglu>();
    if (forward != nullptr && forward->gate == backward->gate && forward->up == backward->up) {
      swiglu = i;
      y = forward->y;
    }
  }
  if (!y.valid()) {
    return;
  }
  const auto uses_of_y = uses_->Of(y);
  std::vector<size_t> late_uses(uses_of_y.begin(), uses_of_y.end());
  std::erase_if(late_uses, [&](size_t i) { return i == swiglu || !IsBackward(ops_[i]); });
  if (late_uses.size() != 1) {
    return;
  }
  const size_t product = late_uses.front();
  auto* gradient = std::get_if<op::Matmul>(&ops_[product].body);
  if (gradient == nullptr || gradient->b != y || product < swiglu || product > index ||
      !uses_->IsUnwritten(gradient->a, product, index + 1) || !uses_->IsUntouched(gradient->out, product, index + 1)) {
    return;
  }
  Emitter emitter(&plan_, &ops_, PassKind::Fuse);
  const Value like = plan_.values[y];
  const ValueId again = emitter.Alias(backward->dy, {like.dtype, like.shape}, like.name);
  plan_.values[again].role = {};
  plan_.values[again].placement = like.placement;
  gradient->b = again;
  Replace(index, op::SwigluBackwardAgain{.dy = backward->dy,
                                         .gate = backward->gate,
                                         .up = backward->up,
                                         .dgate = backward->dgate,
                                         .dup = backward->dup,
                                         .y = again});
  if (ops_[swiglu].phase == Phase::Recompute) {
    Drop(swiglu);
  }
  // The gradient comes directly after.
  const auto at = [&](size_t i) { return ops_.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(product), at(product + 1), at(index + 1));
}

auto SectionFuser::AddInProduct(size_t index) -> void {
  const auto add = AdditionOf(ops_[index]);
  const auto before = Before(index);
  const auto* product = add && before ? ops_[*before].As<op::Matmul>() : nullptr;
  if (product == nullptr || product->out != add->branch || product->out_onto.valid() || add->x == add->branch ||
      uses_->Of(add->branch).size() != 2) {
    return;
  }
  ops_[index].origin = ops_[*before].origin;
  Replace(index, op::MatmulAdd{.a = product->a,
                               .b = product->b,
                               .x = add->x,
                               .out = add->sum,
                               .scratch = {},
                               .transpose_a = product->transpose_a,
                               .transpose_b = product->transpose_b});
  Drop(*before);
}

auto SectionFuser::AddInNorm(size_t index) -> void {
  const auto* norm = ops_[index].As<op::RmsNorm>();
  const auto before = Before(index);
  const auto add = norm != nullptr && before ? AdditionOf(ops_[*before]) : std::nullopt;
  if (!add || add->sum != norm->x || plan_.values[add->branch].dtype != plan_.values[norm->weight].dtype) {
    return;
  }
  // An addition in place becomes one beside its operands, if nothing else lies over the sum.
  Value& sum = plan_.values[add->sum];
  if (const BufferId own = sum.buffer; own == plan_.values[add->branch].buffer) {
    if (!uses_->IsAloneAfter(add->sum, *before)) {
      return;
    }
    const Buffer like = plan_.buffers[own];
    sum.buffer = plan_.buffers.Add(like);
  }
  Replace(index, op::AddRmsNorm{.x = add->x,
                                .branch = add->branch,
                                .weight = norm->weight,
                                .sum = add->sum,
                                .y = norm->y,
                                .rstd = norm->rstd,
                                .eps = norm->eps});
  Drop(*before);
}

auto SectionFuser::PairRopes(size_t index) -> void {
  const auto rope_at = [&](size_t i) { return is_dropped_[i] ? nullptr : ops_[i].As<op::Rope>(); };
  const auto* first = rope_at(index);
  if (first == nullptr) {
    return;
  }
  // Attention reads the result as its queries, or has made their gradient.
  const auto rotates_queries = [&](const auto& rope) {
    const ValueId value = rope.inverse ? rope.x : rope.y;
    return std::ranges::any_of(uses_->Of(value), [&](size_t i) {
      const AttentionFact& fact = FactsOf(ops_[i]).attention;
      return ValueIn(ops_[i].body, rope.inverse ? fact.queries_gradient : fact.queries) == value;
    });
  };
  // Between the two lie the product, the bias and the norm of one projection and their collectives: fewer ops than
  // this. Ropes that are further apart stay two ops, as those of different blocks are.
  constexpr size_t Furthest = 16;
  for (size_t i = index + 1; i < std::min(index + Furthest, ops_.size()); ++i) {
    const auto* second = rope_at(i);
    if (second == nullptr || ops_[i].phase != ops_[index].phase) {
      continue;
    }
    const bool are_alike = second->table == first->table && second->head_dim == first->head_dim &&
                           second->inverse == first->inverse &&
                           plan_.values[second->x].dtype == plan_.values[first->x].dtype;
    const bool may_wait = uses_->IsUntouched(first->x, index, i);
    const bool is_ready = uses_->Of(second->x).front() < index && uses_->IsUntouched(second->x, index, i);
    const bool is_q_first = rotates_queries(*first);
    if (!are_alike || is_q_first == rotates_queries(*second) || (!may_wait && !is_ready)) {
      return;
    }
    const op::Rope q = is_q_first ? *first : *second;
    const op::Rope k = is_q_first ? *second : *first;
    Replace(may_wait ? i : index, op::RopePair{.q = q.x,
                                               .k = k.x,
                                               .table = q.table,
                                               .rotated_q = q.y,
                                               .rotated_k = k.y,
                                               .head_dim = q.head_dim,
                                               .inverse = q.inverse});
    Drop(may_wait ? index : i);
    return;
  }
}

auto SectionFuser::JoinLoss(size_t index) -> void {
  const auto* loss = ops_[index].As<op::CrossEntropy>();
  const auto* backward = index + 1 < ops_.size() ? ops_[index + 1].As<op::CrossEntropyBackward>() : nullptr;
  if (loss == nullptr || backward == nullptr || backward->logits != loss->logits ||
      backward->targets != loss->targets || backward->lse != loss->lse || backward->vocab_axes != AxisSet{} ||
      uses_->Of(loss->lse).size() != 2) {
    return;
  }
  Replace(index + 1, op::CrossEntropyAndGradient{.logits = loss->logits,
                                                 .targets = loss->targets,
                                                 .count = backward->count,
                                                 .loss = loss->loss,
                                                 .loss_onto = loss->loss_onto,
                                                 .dlogits = backward->dlogits,
                                                 .scratch = {},
                                                 .head = loss->head});
  Drop(index);
}

}  // namespace

auto Fuse(Plan plan, PassContext&) -> ErrorOr<Plan> {
  if (plan.kernels != KernelSet::Fused) {
    return plan;
  }
  for (const SectionKind section : {SectionKind::Step, SectionKind::Eval}) {
    SectionFuser(&plan, &plan.section(section).ops).Run();
  }
  RemoveUnused(plan);
  return plan;
}

}  // namespace shardc
