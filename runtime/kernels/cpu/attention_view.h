// What attention and attention_backward share: sizes and strides of sequence-major heads, resolved at bind.
#pragma once

#include <cmath>

#include "compiler/ops/attention_scratch.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/operand.h"

namespace shardc {

/// q is [S, B, A*D], k and v are [S, B, K*D]: the rows of one head lie a stride apart.
struct AttentionView {
  AttentionSizes sizes;
  /// Elements from one position to the next.
  int64_t query_stride = 0;
  int64_t key_stride = 0;
  float scale = 1;
  GemmPath path;

  /// First element of a head, of q's shape and of k's.
  auto QueryHead(int64_t batch, int64_t head) const -> int64_t { return (batch * sizes.heads + head) * sizes.head_dim; }
  auto KeyHead(int64_t batch, int64_t kv_head) const -> int64_t {
    return (batch * sizes.kv_heads + kv_head) * sizes.head_dim;
  }
};

/// The view of an attention op; its scratch is CHECKed against ScratchBytes.
template <class Op>
auto ViewAttention(const Op& op, Binder& binder) -> AttentionView {
  const Plan& plan = binder.plan();
  const Dims& q = ShapeOf(plan, op.q);
  const Dims& k = ShapeOf(plan, op.k);
  CHECK(op.scratch.valid() && BytesOf(plan, op.scratch) >= ScratchBytes(op, plan), "{} needs {} B of scratch",
        Op::Mnemonic, ScratchBytes(op, plan).value);
  return {.sizes = {.batch = q[1],
                    .heads = q[2] / op.head_dim,
                    .kv_heads = k[2] / op.head_dim,
                    .sequence = q[0],
                    .head_dim = op.head_dim},
          .query_stride = q[1] * q[2],
          .key_stride = k[1] * k[2],
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(op.head_dim))),
          .path = GemmPathOf(plan)};
}

/// Calls `make` with T, the operands' type, and E, the type that products take: bf16 is widened where there is no bf16
/// product.
template <class Make>
auto ForProductType(const GemmPath& path, DType dtype, const Make& make) -> Kernel {
  if (dtype == DType::BF16 && !path.brgemm_bf16) {
    return make.template operator()<BFloat16, float>();
  }
  return ForElementType(dtype, [&]<class T>() { return make.template operator()<T, T>(); });
}

}  // namespace shardc
