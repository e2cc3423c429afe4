// The sizes of attention and attention_backward, and what both of them make of these.
#include "compiler/ops/cpu/attention_scratch.h"

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

auto BytesOfSlots(const AttentionSizes& sizes, const Plan& plan, int64_t floats) -> Bytes {
  return Bytes{SizeOf(DType::F32) * sizes.slots(plan.run.threads) * floats};
}

auto PartsOf(const AttentionSizes& sizes, const Plan& plan) -> WorkParts {
  const int64_t parts = sizes.slots(plan.run.threads);
  return {.all = parts, .products = parts};
}

}  // namespace shardc
