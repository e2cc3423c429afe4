#include "compiler/passes/microbatch_loop.h"

#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ops/loss.h"
#include "compiler/ops/rewrite.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/passes/gradient_slice.h"

namespace shardc {

namespace {

auto IsMicrobatch(const Op& op) -> bool { return op.phase != Phase::None; }

/// Makes the first contributions to gradients add to what the microbatch before left there.
class GradientCarrier : public IgnoreFields {
 public:
  /// Takes in `vectors` the buffers that hold gradients.
  GradientCarrier(Emitter* names, const std::unordered_set<BufferId>* vectors) : names_(*names), vectors_(*vectors) {}

  auto Add(Op& op) -> void {
    VisitBody(op.body, [&](auto& body) { VisitFields(body, *this); });
  }
  auto EmitCarries(Emitter& emitter) const -> void {
    for (const auto& [begin, ends] : ends_) {
      emitter.Emit(op::Carry{.last = ends.last, .first = ends.first});
    }
  }

  auto Acc(std::string_view, ValueId id, ValueId& onto) -> void {
    const Value gradient = names_.plan().values[id];
    if (!vectors_.contains(gradient.buffer)) {
      return;
    }
    Ends& ends = ends_[{gradient.buffer, gradient.offset.base}];
    if (!onto.valid()) {
      onto = names_.Alias(id, {gradient.dtype, gradient.shape}, gradient.name + ".sum");
      names_.plan().values[onto].placement = gradient.placement;
      ends.first = onto;
    }
    ends.last = id;
  }

 private:
  struct Ends {
    ValueId first;
    ValueId last;
  };

  Emitter& names_;
  const std::unordered_set<BufferId>& vectors_;
  /// First and last contribution to each gradient in a microbatch, by buffer and offset.
  std::map<std::pair<BufferId, int64_t>, Ends> ends_;
};

/// Clears whole gradients before the loop, and carries them through it. `sums`: under which name what the loop leaves
/// is read.
auto CarryWhole(Plan& plan, std::vector<Op>& body, Emitter& outside, Emitter& carry,
                std::unordered_map<ValueId, ValueId>& sums) -> void {
  std::unordered_set<BufferId> vectors;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (sub_vector.trainable) {
      const Value whole = plan.values[sub_vector.gradient];
      vectors.insert(whole.buffer);
      // Two names: what the loop leaves is not what it began with, though no op writes the whole at once.
      const auto named = [&](std::string_view suffix) {
        const ValueId id =
            outside.Alias(sub_vector.gradient, {whole.dtype, whole.shape}, whole.name + std::string(suffix));
        plan.values[id].placement = whole.placement;
        return id;
      };
      outside.Emit(op::Fill{.out = named(".cleared"), .value = 0});
      sums[sub_vector.gradient] = named(".sum");
    }
  }
  GradientCarrier carrier(&outside, &vectors);
  for (Op& op : body) {
    carrier.Add(op);
  }
  carrier.EmitCarries(carry);
}

}  // namespace

auto LoopOverMicrobatches(Plan& plan, Section& section, bool reduces_last, const std::vector<DType>& reduce_types)
    -> void {
  if (plan.run.accumulate == 1) {
    return;
  }
  std::vector<Op> before;
  std::vector<Op> body;
  std::vector<Op> after;
  for (Op& op : section.ops) {
    (IsMicrobatch(op) ? body : body.empty() ? before : after).push_back(std::move(op));
  }
  const Origin origin{0, "batch.accumulate"};
  Emitter outside(&plan, &before, PassKind::Shard);
  outside.set_origin(origin);
  std::vector<Op> carries;
  Emitter carry(&plan, &carries, PassKind::Shard);
  carry.set_origin(origin);
  // `sum` is cleared before the loop, added to in it, and carried.
  const auto accumulate = [&](ValueId next, std::string_view name) {
    const Value like = plan.values[next];
    const ValueId sum = outside.Alias(next, {like.dtype, like.shape}, fmt::format("{}.sum", name));
    plan.values[sum].placement = like.placement;
    outside.Emit(op::Fill{.out = sum, .value = 0});
    carry.Emit(op::Carry{.last = next, .first = sum});
    return sum;
  };
  std::unordered_map<ValueId, ValueId> sums;
  // The chunks of a loss add onto each other: the first adds onto what is carried, and what the last leaves is.
  const auto last_losses = LastLossSums(body);
  for (Op& op : body) {
    VisitBody(op.body, [&](auto& concrete) {
      using Body = std::remove_cvref_t<decltype(concrete)>;
      if constexpr (requires { concrete.loss_onto; }) {
        if (!concrete.loss_onto.valid()) {
          const ValueId loss = last_losses.at(concrete.loss);
          sums[loss] = concrete.loss_onto =
              accumulate(loss, concrete.head.valid() ? plan.heads[concrete.head].name + ".loss" : "loss");
        }
      } else if constexpr (std::is_same_v<Body, op::ReduceScatter>) {
        if (!GradientScatterOf(plan, op)) {
          return;
        }
        sums[concrete.shard] = concrete.shard_onto = accumulate(concrete.shard, plan.values[concrete.shard].name);
      } else if constexpr (std::is_same_v<Body, op::Add>) {
        if (!concrete.b.valid()) {
          sums[concrete.y] = concrete.b = accumulate(concrete.y, plan.values[concrete.y].name);
        }
      }
    });
  }
  if (reduces_last) {
    CarryWhole(plan, body, outside, carry, sums);
  }
  for (SubVector& sub_vector : plan.sub_vectors) {
    if (!sub_vector.trainable) {
      continue;
    }
    sub_vector.gradient = sums.at(sub_vector.gradient);
  }
  for (Op& op : after) {
    ReplaceReads(op.body, [&](ValueId& id) { id = sums.contains(id) ? sums.at(id) : id; });
    for (const Access& access : AccessesOf(op.body)) {
      if (access.kills.valid()) {
        CHECK(plan.values[access.value].buffer == plan.values[access.kills].buffer, "a sum moved");
      }
    }
  }

  std::vector<Op>& ops = section.ops;
  ops = std::move(before);
  Emitter emitter(&plan, &ops, PassKind::Shard);
  emitter.set_origin(origin);
  emitter.Emit(op::Repeat{.count = plan.run.accumulate});
  ops.insert(ops.end(), body.begin(), body.end());
  ops.insert(ops.end(), carries.begin(), carries.end());
  emitter.Emit(op::EndRepeat{});
  ops.insert(ops.end(), after.begin(), after.end());
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    const SubVector sub_vector = plan.sub_vectors[id];
    if (reduces_last && sub_vector.trainable && plan.mesh.size(sub_vector.axes) > 1) {
      plan.sub_vectors[id].gradient =
          ReduceGradient(id, sub_vector.gradient, reduce_types[static_cast<size_t>(id.index)], emitter);
    }
  }
}

}  // namespace shardc
