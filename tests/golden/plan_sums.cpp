#include "tests/golden/plan_sums.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace shardc {

/// Calls `function(op, times)` for each op of `step`, with the product of the counts of the repeats round it.
template <class Function>
static auto ForEachStepOp(const Plan& plan, Function&& function) -> void {
  std::vector<int64_t> times{1};
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (op.As<op::EndRepeat>() != nullptr) {
      times.pop_back();
    }
    function(op, times.back());
    if (const auto* repeat = op.As<op::Repeat>()) {
      times.push_back(times.back() * repeat->count);
    }
  }
}

auto SumStepCommunication(const Plan& plan) -> CommunicationSums {
  CommunicationSums sums;
  const auto add = [&](const Op& op, int64_t times, AxisSet axes, DType dtype, int64_t payload, int64_t rounds) {
    const int64_t ranks = plan.mesh.size(axes);
    CommunicationSum& sum = sums[{op.kind(), axes.bits, dtype}];
    sum.count += times;
    sum.payload_bytes += times * payload;
    sum.wire_bytes += times * rounds * payload * (ranks - 1);
  };
  ForEachStepOp(plan, [&](const Op& op, int64_t times) {
    const auto add_value = [&](ValueId value, AxisSet axes, int64_t rounds) {
      add(op, times, axes, plan.values[value].dtype, plan.values[value].bytes().value, rounds);
    };
    if (const auto* gather = op.As<op::AllGather>()) {
      add_value(gather->full, gather->axes, 1);
    } else if (const auto* scatter = op.As<op::ReduceScatter>()) {
      add_value(scatter->full, scatter->axes, 1);
    } else if (const auto* reduce = op.As<op::AllReduce>()) {
      // By slices, or each rank's whole vector to each other.
      const Arena arena = plan.buffers[plan.values[reduce->x].buffer].arena;
      const bool by_slices = arena != Arena::Transient && arena != Arena::Persistent && arena != Arena::Host;
      add_value(reduce->x, reduce->axes, by_slices ? 2 : plan.mesh.size(reduce->axes));
    } else if (const auto* control = op.As<op::Control>()) {
      // Two 64-bit words.
      add(op, times, control->axes, DType::I64, 16, plan.mesh.size(control->axes));
    }
  });
  // Of all ranks of a group so far.
  for (auto& [key, sum] : sums) {
    sum.wire_bytes /= plan.mesh.size(AxisSet{std::get<1>(key)});
  }
  return sums;
}

auto SumStepFlops(const Plan& plan) -> FlopSums {
  FlopSums sums;
  ForEachStepOp(plan, [&](const Op& op, int64_t times) {
    int64_t flops = 0;
    if (const auto* matmul = op.As<op::Matmul>()) {
      const Dims& a = plan.values[matmul->a].shape;
      const int64_t inner = matmul->transpose_a ? NumElements(a) / a.back() : a.back();
      flops = 2 * inner * plan.values[matmul->out].num_elements();
    } else if (const auto* attention = op.As<op::Attention>()) {
      // q k^T and p v, the causal half of each: S^2 D multiply-adds a head in all.
      flops = 2 * plan.values[attention->lse].num_elements() * plan.values[attention->q].shape[0] * attention->head_dim;
    } else if (const auto* backward = op.As<op::AttentionBackward>()) {
      flops = 4 * plan.values[backward->lse].num_elements() * plan.values[backward->q].shape[0] * backward->head_dim;
    }
    (op.phase == Phase::Recompute ? sums.recompute : sums.model) += times * flops;
  });
  return sums;
}

auto AliveBytes::total() const -> int64_t {
  return std::accumulate(by_category.begin(), by_category.end(), int64_t{0});
}

auto SweepMemory(const Plan& plan, SectionKind kind) -> std::vector<AliveBytes> {
  const std::vector<Op>& ops = plan.section(kind).ops;
  // First touch and release of each buffer, by id.
  struct Life {
    std::optional<size_t> begin;
    std::optional<size_t> end;
  };
  std::vector<Life> lives(static_cast<size_t>(plan.buffers.size()));
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const Access& access : AccessesOf(ops[i].body)) {
      Life& life = lives[static_cast<size_t>(plan.values[access.value].buffer.index)];
      life.begin = life.begin.value_or(i);
    }
    if (const auto* release = ops[i].As<op::Release>()) {
      lives[static_cast<size_t>(release->buffer.index)].end = i;
    }
  }
  // What each op adds, and takes away from the one after it; then running sums.
  std::vector<AliveBytes> alive(ops.size() + 1);
  for (const BufferId id : plan.buffers.ids()) {
    const Buffer& buffer = plan.buffers[id];
    const Life& life = lives[static_cast<size_t>(id.index)];
    const auto category = static_cast<size_t>(buffer.category);
    if (IsPersistent(buffer.arena)) {
      alive[0].by_category[category] += buffer.bytes.value;
    } else if (life.begin) {
      alive[*life.begin].by_category[category] += buffer.bytes.value;
      alive[std::min(life.end.value_or(ops.size()) + 1, ops.size())].by_category[category] -= buffer.bytes.value;
    }
  }
  alive.pop_back();
  for (size_t i = 1; i < alive.size(); ++i) {
    for (size_t c = 0; c < NumCategories; ++c) {
      alive[i].by_category[c] += alive[i - 1].by_category[c];
    }
  }
  return alive;
}

auto EndOfArena(const Plan& plan, Arena arena) -> int64_t {
  int64_t end = 0;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.arena == arena && buffer.offset >= 0) {
      end = std::max(end, buffer.offset + buffer.bytes.value);
    }
  }
  return end;
}

}  // namespace shardc
