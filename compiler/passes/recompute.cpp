// Activation checkpointing: what forward keeps, and what backward computes again.
//
// Needs: forward and backward ops in `step`, tagged with their block. Gives: where the policy says so, a block whose
// inner activations, but for those that the policy saves, are read by recomputed copies only.
//   1. of the values that a block's forward writes, keep those that other blocks read, which is the block's result, and
//      those saved. What forward writes over the bytes of a saved value is kept in its place: that is what is left
//   2. the rest that backward reads, and what it takes to compute them from what is kept, is emitted again, in forward
//      order and with buffers of its own, before the first backward op of the block
//   3. backward ops read the copies
//   4. where the policy stands for another program's memory, what is saved stays until the block's backward, read or
//      not: sums that would overwrite it get bytes of their own, and it is released behind the recomputed ops
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/expr/layer_choice.h"
#include "compiler/ops/emitter.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/saved_results.h"

namespace shardc {

namespace {

class BlockRecomputer {
 public:
  BlockRecomputer(Plan* plan, std::vector<Op>* ops, int32_t layer, std::vector<ValueId> saved, Origin origin)
      : plan_(*plan), ops_(*ops), layer_(layer), saved_(std::move(saved)), origin_(std::move(origin)) {}

  /// The ops of the block to emit again; backward ops are redirected to what they write.
  auto Run() -> std::vector<Op> {
    FindProduced();
    KeepSaved();
    std::vector<Op> again = Wanted();
    for (Op& op : again) {
      Copy(op);
    }
    for (Op& op : ops_) {
      if (op.phase == Phase::Backward) {
        Redirect(op);
      }
    }
    return again;
  }

  /// Before Run: a sum in place over a saved value is computed out of place.
  auto GiveSumsOwnBytes() -> void {
    for (Op& op : ops_) {
      const auto* sum = op.As<op::Add>();
      if (sum == nullptr || !InBlock(op) || std::find(saved_.begin(), saved_.end(), sum->b) == saved_.end()) {
        continue;
      }
      const BufferId taken = plan_.values[sum->b].buffer;
      Buffer own = plan_.buffers[taken];
      own.name = plan_.values[sum->y].name;
      const BufferId bytes = plan_.buffers.Add(std::move(own));
      for (const ValueId id : plan_.values.ids()) {
        if (plan_.values[id].buffer == taken && id != sum->b) {
          plan_.values[id].buffer = bytes;
        }
      }
      op.body = op::ResidualAdd{.x = sum->a, .branch = sum->b, .y = sum->y};
    }
  }

  /// After Run, with the ops that it returned: releases what nothing in backward reads, and schedule would release in
  /// forward.
  auto ReleaseDeadSaves(std::vector<Op>& again) -> void {
    std::unordered_set<BufferId> read;
    const auto collect = [&](const Op& op) {
      for (const Access& access : AccessesOf(op.body)) {
        read.insert(plan_.values[access.value].buffer);
      }
    };
    std::for_each(again.begin(), again.end(), collect);
    for (const Op& op : ops_) {
      if (op.phase == Phase::Backward) {
        collect(op);
      }
    }
    Emitter emitter(&plan_, &again, PassKind::Recompute);
    emitter.set_layer(layer_);
    emitter.set_phase(Phase::Recompute);
    emitter.set_origin(origin_);
    for (const ValueId id : saved_) {
      if (const BufferId buffer = plan_.values[id].buffer; !read.contains(buffer)) {
        emitter.Emit(op::Release{.buffer = buffer});
      }
    }
  }

 private:
  auto InBlock(const Op& op) const -> bool { return op.phase == Phase::Forward && op.layer == layer_; }

  auto FindProduced() -> void {
    for (const Op& op : ops_) {
      for (const Access& access : AccessesOf(op.body)) {
        if (InBlock(op) && access.kind != AccessKind::Read) {
          produced_.insert(access.value);
          last_written_[plan_.values[access.value].buffer] = access.value;
        } else if (op.phase == Phase::Forward && !InBlock(op) && produced_.contains(access.value)) {
          kept_.insert(access.value);
        }
      }
    }
  }

  auto KeepSaved() -> void {
    for (const ValueId id : saved_) {
      kept_.insert(last_written_.at(plan_.values[id].buffer));
    }
  }

  auto IsRecomputed(ValueId id) const -> bool { return produced_.contains(id) && !kept_.contains(id); }

  /// Walks the block backward from what backward reads.
  auto Wanted() const -> std::vector<Op> {
    std::unordered_set<ValueId> wanted;
    for (const Op& op : ops_) {
      if (op.phase != Phase::Backward) {
        continue;
      }
      for (const Access& access : AccessesOf(op.body)) {
        if (access.kind != AccessKind::Write && IsRecomputed(access.value)) {
          wanted.insert(access.value);
        }
      }
    }
    std::vector<Op> again;
    for (auto op = ops_.rbegin(); op != ops_.rend(); ++op) {
      if (!InBlock(*op)) {
        continue;
      }
      const auto accesses = AccessesOf(op->body);
      if (std::none_of(accesses.begin(), accesses.end(), [&](const Access& access) {
            return access.kind != AccessKind::Read && wanted.contains(access.value);
          })) {
        continue;
      }
      for (const Access& access : accesses) {
        if (access.kind != AccessKind::Write && IsRecomputed(access.value)) {
          wanted.insert(access.value);
        }
      }
      again.push_back(*op);
    }
    std::reverse(again.begin(), again.end());
    return again;
  }

  auto CopyOfBuffer(BufferId buffer) -> BufferId {
    const auto found = buffer_copies_.find(buffer);
    if (found != buffer_copies_.end()) {
      return found->second;
    }
    const Buffer original = plan_.buffers[buffer];
    return buffer_copies_[buffer] = plan_.buffers.Add(original);
  }

  auto Copy(Op& op) -> void {
    op.phase = Phase::Recompute;
    op.made_by = PassKind::Recompute;
    op.origin = origin_;
    const auto redirect = [&](ValueId& id) { id = value_copies_.contains(id) ? value_copies_.at(id) : id; };
    ReplaceReads(op.body, redirect);
    ReplaceWrites(op.body, [&](ValueId& id) {
      Value copy = plan_.values[id];
      copy.buffer = CopyOfBuffer(copy.buffer);
      const ValueId original = id;
      id = plan_.values.Add(std::move(copy));
      value_copies_[original] = id;
    });
  }

  /// Reads go to the copies. A gradient over the bytes of a recomputed value moves with them.
  auto Redirect(Op& op) -> void {
    for (const Access& access : AccessesOf(op.body)) {
      if (access.kills.valid() && value_copies_.contains(access.kills)) {
        Value& result = plan_.values[access.value];
        result.buffer = buffer_copies_.at(result.buffer);
      }
    }
    ReplaceReads(op.body, [&](ValueId& id) { id = value_copies_.contains(id) ? value_copies_.at(id) : id; });
  }

  Plan& plan_;
  std::vector<Op>& ops_;
  int32_t layer_;
  std::vector<ValueId> saved_;
  Origin origin_;
  std::unordered_set<ValueId> produced_;
  std::unordered_set<ValueId> kept_;
  /// On each buffer that the block's forward writes, what it leaves there.
  std::unordered_map<BufferId, ValueId> last_written_;
  std::unordered_map<ValueId, ValueId> value_copies_;
  std::unordered_map<BufferId, BufferId> buffer_copies_;
};

}  // namespace

auto Recompute(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const RecomputeSection& recompute = context.recipe->recompute;
  if (*recompute.policy == "none") {
    return plan;
  }
  const auto chosen =
      ChooseLayers(recompute.layers->text, *context.recipe->model.layers, *context.recipe->model.hidden);
  CHECK(chosen.ok(), "check let the blocks `{}` pass", recompute.layers->text);
  std::vector<Op> ops = std::move(plan.section(SectionKind::Step).ops);
  std::map<int32_t, std::vector<Op>> again;
  for (const Op& op : ops) {
    if (op.layer >= 0 && chosen.value.at(static_cast<size_t>(op.layer))) {
      again[op.layer];
    }
  }
  for (auto& [layer, copies] : again) {
    BlockRecomputer recomputer(&plan, &ops, layer, SavedResults(plan, ops, layer, recompute),
                               OriginOf(recompute.policy, "recompute.policy"));
    if (*recompute.policy == "torchtitan-sac") {
      recomputer.GiveSumsOwnBytes();
      copies = recomputer.Run();
      recomputer.ReleaseDeadSaves(copies);
    } else {
      copies = recomputer.Run();
    }
  }
  std::vector<Op>& result = plan.section(SectionKind::Step).ops;
  result.clear();
  for (Op& op : ops) {
    if (const auto copies = again.find(op.layer); op.phase == Phase::Backward && copies != again.end()) {
      result.insert(result.end(), copies->second.begin(), copies->second.end());
      again.erase(copies);
    }
    result.push_back(std::move(op));
  }
  RemoveUnused(plan);
  return plan;
}

}  // namespace shardc
