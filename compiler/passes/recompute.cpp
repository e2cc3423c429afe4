// Activation checkpointing: what forward keeps, and what backward computes again.
//
// Needs: forward and backward ops in `step`, tagged with their block. Gives: where the policy says so, a block whose
// inner activations are read by recomputed copies only.
//   1. of the values that a block's forward writes, keep those that other blocks read: the block's result
//   2. the rest that backward reads, and what it takes to compute them from what is kept, is emitted again, in forward
//      order and with buffers of its own, before the first backward op of the block
//   3. backward ops read the copies
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/ops/emitter.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/pass.h"

namespace shardc {

namespace {

class BlockRecomputer {
 public:
  BlockRecomputer(Plan* plan, std::vector<Op>* ops, int32_t layer, Origin origin)
      : plan_(*plan), ops_(*ops), layer_(layer), origin_(std::move(origin)) {}

  /// The ops of the block to emit again; backward ops are redirected to what they write.
  auto Run() -> std::vector<Op> {
    FindProduced();
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

 private:
  auto InBlock(const Op& op) const -> bool { return op.phase == Phase::Forward && op.layer == layer_; }

  auto FindProduced() -> void {
    for (const Op& op : ops_) {
      for (const Access& access : AccessesOf(op.body)) {
        if (InBlock(op) && access.kind != AccessKind::Read) {
          produced_.insert(access.value);
        } else if (op.phase == Phase::Forward && !InBlock(op) && produced_.contains(access.value)) {
          kept_.insert(access.value);
        }
      }
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
  Origin origin_;
  std::unordered_set<ValueId> produced_;
  std::unordered_set<ValueId> kept_;
  std::unordered_map<ValueId, ValueId> value_copies_;
  std::unordered_map<BufferId, BufferId> buffer_copies_;
};

}  // namespace

auto Recompute(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  if (*context.recipe->recompute.policy == "none") {
    return plan;
  }
  std::vector<Op> ops = std::move(plan.section(SectionKind::Step).ops);
  std::map<int32_t, std::vector<Op>> again;
  for (const Op& op : ops) {
    if (op.layer >= 0) {
      again[op.layer];
    }
  }
  for (auto& [layer, copies] : again) {
    copies = BlockRecomputer(&plan, &ops, layer, OriginOf(context.recipe->recompute.policy, "recompute.policy")).Run();
  }
  std::vector<Op>& result = plan.section(SectionKind::Step).ops;
  result.clear();
  for (Op& op : ops) {
    if (op.phase == Phase::Backward && op.layer >= 0) {
      std::vector<Op>& copies = again[op.layer];
      result.insert(result.end(), copies.begin(), copies.end());
      copies.clear();
    }
    result.push_back(std::move(op));
  }
  RemoveUnused(plan);
  return plan;
}

}  // namespace shardc
