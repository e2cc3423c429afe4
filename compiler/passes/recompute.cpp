// Activation checkpointing: what forward keeps, and what backward computes again.
//
// Needs: forward and backward ops in `step`, tagged with their block. Gives: where the policy says so, a block whose
// inner activations, but for those that the policy saves, are read by recomputed copies only.
//   1. of the values that a block's forward writes, keep those that other blocks read, which is the block's result, and
//      those saved. If forward writes over the bytes of a saved value, the result is kept instead: the bytes hold that
//   2. the rest that backward reads, and what it takes to compute them from what is kept, is emitted again, in forward
//      order and with buffers of its own, before the first backward op of the block
//   3. backward ops read the copies
//
// What is saved and read by no op of backward is released as early as anything else that no op reads any more.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "compiler/base/mapped.h"
#include "compiler/expr/layer_choice.h"
#include "compiler/ops/rewrite.h"
#include "compiler/passes/saved_results.h"
#include "compiler/recipe/resolved.h"

namespace shardc {

namespace {

/// Indices into the list of ops, so that a block costs what it has, and not what the model has.
struct OpIndex {
  explicit OpIndex(const std::vector<Op>& ops) {
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].phase == Phase::Forward) {
        forward[ops[i].layer].push_back(i);
      }
      for (const Access& access : AccessesOf(ops[i].body)) {
        touches[access.value].push_back(i);
      }
    }
  }

  /// The forward ops of each block, in order.
  std::unordered_map<int32_t, std::vector<size_t>> forward;
  /// The ops that read or write each value, in order.
  std::unordered_map<ValueId, std::vector<size_t>> touches;
};

class BlockRecomputer {
 public:
  BlockRecomputer(Plan* plan, std::vector<Op>* ops, const OpIndex* index, int32_t layer, std::vector<ValueId> saved,
                  Origin origin)
      : plan_(*plan), ops_(*ops), index_(*index), layer_(layer), saved_(std::move(saved)), origin_(std::move(origin)) {}

  /// Returns the ops of the block to emit again; backward ops are redirected to what they write.
  auto Run() -> std::vector<Op> {
    FindProduced();
    KeepSaved();
    std::vector<Op> again = Wanted();
    for (Op& op : again) {
      Copy(op);
    }
    for (const size_t i : BackwardReaders()) {
      Redirect(ops_[i]);
    }
    return again;
  }

 private:
  auto OpsOn(ValueId id) const -> std::span<const size_t> {
    const auto found = index_.touches.find(id);
    return found == index_.touches.end() ? std::span<const size_t>{} : found->second;
  }
  auto BackwardOpsOn(ValueId id) const -> std::vector<size_t> {
    std::vector<size_t> found;
    for (const size_t i : OpsOn(id)) {
      if (ops_[i].phase == Phase::Backward) {
        found.push_back(i);
      }
    }
    return found;
  }
  auto IsReadBy(ValueId id, const Op& op) const -> bool {
    const auto accesses = AccessesOf(op.body);
    return std::any_of(accesses.begin(), accesses.end(),
                       [&](const Access& access) { return access.value == id && access.kind != AccessKind::Write; });
  }
  /// Returns the backward ops that read, or write over, what is computed again.
  auto BackwardReaders() const -> std::set<size_t> {
    std::set<size_t> readers;
    for (const auto& [original, copy] : value_copies_) {
      const std::vector<size_t> found = BackwardOpsOn(original);
      readers.insert(found.begin(), found.end());
    }
    return readers;
  }

  auto FindProduced() -> void {
    for (const size_t i : index_.forward.at(layer_)) {
      for (const Access& access : AccessesOf(ops_[i].body)) {
        if (access.kind != AccessKind::Read) {
          produced_.insert(access.value);
          last_written_[plan_.values[access.value].buffer] = access.value;
        }
      }
    }
    for (const ValueId id : produced_) {
      for (const size_t i : OpsOn(id)) {
        if (ops_[i].phase == Phase::Forward && ops_[i].layer != layer_) {
          kept_.insert(id);
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
    for (const ValueId id : produced_) {
      const std::vector<size_t> users = BackwardOpsOn(id);
      if (IsRecomputed(id) &&
          std::any_of(users.begin(), users.end(), [&](size_t user) { return IsReadBy(id, ops_[user]); })) {
        wanted.insert(id);
      }
    }
    std::vector<Op> again;
    const std::vector<size_t>& block = index_.forward.at(layer_);
    for (auto i = block.rbegin(); i != block.rend(); ++i) {
      const Op& op = ops_[*i];
      const auto accesses = AccessesOf(op.body);
      if (std::none_of(accesses.begin(), accesses.end(), [&](const Access& access) {
            return access.kind != AccessKind::Read && wanted.contains(access.value);
          })) {
        continue;
      }
      for (const Access& access : accesses) {
        if (access.kind != AccessKind::Write && IsRecomputed(access.value)) {
          wanted.insert(access.value);
        }
        if (access.kills.valid() && IsRecomputed(access.kills)) {
          wanted.insert(access.kills);
        }
      }
      again.push_back(op);
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
  const OpIndex& index_;
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
  if (*recompute.policy == RecomputePolicy::None) {
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
  const OpIndex index(ops);
  const ParameterSpecs specs =
      ParametersOf(ModelFamilyOf(*context.recipe->model.family), ResolveModel(*context.recipe));
  for (auto& [layer, copies] : again) {
    const auto block = Mapped<const Op*>(index.forward.at(layer), [&](const size_t i) { return &ops[i]; });
    BlockRecomputer recomputer(&plan, &ops, &index, layer, SavedResults(plan, specs, block, recompute),
                               OriginOf(recompute.policy, "recompute.policy"));
    copies = recomputer.Run();
  }
  std::vector<Op>& result = plan.section(SectionKind::Step).ops;
  result.clear();
  result.reserve(2 * ops.size());
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
