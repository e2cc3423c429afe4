// 1. An op that computes again is known by its operands: the op of the same kind and block, on the same parameters and
//    on the same values, or on those that stand for them.
// 2. The buffers that forward ops of a block write are its tensors. A buffer that forward does not release is kept.
// 3. Blocks whose tensors are alike share a table.

#include "compiler/cost/block_activations.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "compiler/cost/fold.h"
#include "compiler/ops/op_facts.h"

namespace shardc {

namespace {

/// Which op: its kind, its block, and its operands as numbers.
using OpKey = std::vector<int64_t>;

/// Finds the forward op that an op computes again.
class ComputedAgain {
 public:
  explicit ComputedAgain(const Plan& plan) : plan_(plan) {
    for (const Op& op : plan.section(SectionKind::Step).ops) {
      if (op.phase == Phase::Forward) {
        forward_.emplace(KeyOf(op), &op);
      } else if (op.phase == Phase::Recompute) {
        Match(op);
      }
    }
  }
  /// Returns true if a later op computes what this one writes.
  auto Has(const Op& op) const -> bool { return again_.contains(&op); }

 private:
  auto KeyOf(const Op& op) const -> OpKey {
    OpKey key{static_cast<int64_t>(op.kind()), op.layer};
    for (const Access& access : AccessesOf(op.body)) {
      if (access.kind == AccessKind::Read) {
        const ParameterId parameter = plan_.values[access.value].role.parameter();
        const auto stands_for = stands_for_.find(access.value);
        const ValueId value = stands_for == stands_for_.end() ? access.value : stands_for->second;
        key.push_back(parameter.valid() ? -2 - int64_t{parameter.index} : int64_t{value.index});
      }
    }
    return key;
  }

  auto Match(const Op& op) -> void {
    const auto found = forward_.find(KeyOf(op));
    if (found == forward_.end()) {
      return;
    }
    again_.insert(found->second);
    const AccessList there = AccessesOf(found->second->body);
    const AccessList here = AccessesOf(op.body);
    for (size_t i = 0; i < here.size() && i < there.size(); ++i) {
      if (here[i].kind != AccessKind::Read) {
        stands_for_[here[i].value] = there[i].value;
      }
    }
  }

  const Plan& plan_;
  std::map<OpKey, const Op*> forward_;
  std::unordered_map<ValueId, ValueId> stands_for_;
  std::unordered_set<const Op*> again_;
};

}  // namespace

/// Returns "model.layers.3.mlp.gate_proj" as "mlp.gate_proj".
static auto WithoutBlock(const std::string& name) -> std::string {
  const std::string pattern = Numbered(name).pattern;
  const size_t star = pattern.find("*.");
  return star == std::string::npos ? name : pattern.substr(star + 2);
}

/// Returns the buffers that an op of forward releases.
static auto FreedInForward(const Plan& plan) -> std::unordered_set<BufferId> {
  std::unordered_set<BufferId> freed;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (const BufferId dead = ReleasedBufferOf(op.body); dead.valid() && op.phase == Phase::Forward) {
      freed.insert(dead);
    }
  }
  return freed;
}

/// Returns whether a result is alive until backward, or else whether its op runs again.
static auto FateOf(bool is_freed, bool is_again, const Op& op) -> AfterForward {
  if (!is_freed) {
    return AfterForward::Kept;
  }
  if (!is_again) {
    return AfterForward::Freed;
  }
  return FactsOf(op).collective == CollectiveKind::AllGather ? AfterForward::GatheredAgain
                                                             : AfterForward::ComputedAgain;
}

auto BlockActivations::kept() const -> Bytes {
  Bytes sum;
  for (const BlockTensor& tensor : tensors) {
    sum += tensor.after == AfterForward::Kept ? tensor.bytes : Bytes{};
  }
  return sum;
}

/// Returns the tensors of each block, by its number.
static auto TensorsOfBlocks(const Plan& plan) -> std::map<int64_t, std::vector<BlockTensor>> {
  const ComputedAgain again(plan);
  const std::unordered_set<BufferId> freed = FreedInForward(plan);
  std::map<int64_t, std::vector<BlockTensor>> blocks;
  // Of each buffer, its block and its place among the tensors there.
  std::unordered_map<BufferId, std::pair<int64_t, size_t>> known;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (op.phase != Phase::Forward || op.layer < 0) {
      continue;
    }
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan.values[access.value];
      const Category category = plan.buffers[value.buffer].category;
      if (access.kind == AccessKind::Read || access.is_scratch ||
          (category != Category::Activations && category != Category::Collective)) {
        continue;
      }
      const auto [place, fresh] = known.try_emplace(value.buffer, op.layer, blocks[op.layer].size());
      std::vector<BlockTensor>& tensors = blocks[place->second.first];
      if (fresh) {
        tensors.push_back({.name = WithoutBlock(value.name),
                           .shape = value.shape,
                           .dtype = value.dtype,
                           .bytes = plan.buffers[value.buffer].bytes,
                           .after = FateOf(freed.contains(value.buffer), again.Has(op), op),
                           .ops = std::string(ToText(op.kind()))});
      } else {
        tensors[place->second.second].ops += fmt::format(", {}", ToText(op.kind()));
      }
    }
  }
  return blocks;
}

auto BlockActivationsOf(const Plan& plan) -> std::vector<BlockActivations> {
  std::vector<BlockActivations> tables;
  for (auto& [block, tensors] : TensorsOfBlocks(plan)) {
    if (tensors.empty()) {
      continue;
    }
    const auto alike = std::ranges::find_if(
        tables, [&tensors = tensors](const BlockActivations& table) { return table.tensors == tensors; });
    if (alike != tables.end()) {
      alike->blocks.push_back(block);
    } else {
      tables.push_back({.blocks = {block}, .tensors = std::move(tensors)});
    }
  }
  return tables;
}

}  // namespace shardc
