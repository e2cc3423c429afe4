// Scratch of attention and attention_backward, as attention_scratch.h cuts it.
#include "compiler/ops/attention_scratch.h"

#include "compiler/ops/op_support.h"

namespace shardc {

auto AttentionSizesOf(const Plan& plan, ValueId q, ValueId k, int64_t head_dim) -> AttentionSizes {
  const Dims& query = ShapeOf(plan, q);
  return {.batch = query[1],
          .heads = query[2] / head_dim,
          .kv_heads = ShapeOf(plan, k)[2] / head_dim,
          .sequence = query[0],
          .head_dim = head_dim,
          .blocks = FactsOf(plan.device).blocks};
}

/// `floats`: of one slot.
static auto BytesOfSlots(const AttentionSizes& sizes, const Plan& plan, int64_t floats) -> Bytes {
  return Bytes{SizeOf(DType::F32) * sizes.slots(plan.run.threads) * floats};
}

auto ScratchBytes(const op::Attention& op, const Plan& plan) -> Bytes {
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return BytesOfSlots(sizes, plan, AttentionParts(sizes).total);
  }
  CHECK(false, "a device of no family");
}

auto ScratchBytes(const op::AttentionBackward& op, const Plan& plan) -> Bytes {
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  switch (FactsOf(plan.device).family) {
    case DeviceFamily::Cpu: return BytesOfSlots(sizes, plan, AttentionBackwardParts(sizes).total);
  }
  CHECK(false, "a device of no family");
}

}  // namespace shardc
