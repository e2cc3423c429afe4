// What attention and attention_backward share: sizes and strides of sequence-major heads, resolved at bind.
#pragma once

#include <cmath>

#include "compiler/ops/cpu/attention_scratch.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/machine/operand.h"
#include "runtime/kernels/machine/parallel.h"

namespace shardc {

/// q is [S, B, A*D], k and v are [S, B, K*D]: the rows of one head lie a stride apart.
struct AttentionView {
  AttentionSizes sizes;
  int64_t slots = 0;
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

/// The view of an attention op; its scratch is CHECKed.
template <class Op>
auto ViewAttention(const Op& op, Binder& binder) -> AttentionView {
  const Plan& plan = binder.plan();
  CheckScratch(op, plan);
  CHECK(!op.starts.valid(), "{} over documents", Op::Mnemonic);
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  return {.sizes = sizes,
          .slots = sizes.slots(plan.run.threads),
          .query_stride = sizes.batch * sizes.heads * sizes.head_dim,
          .key_stride = sizes.batch * sizes.kv_heads * sizes.head_dim,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(op.head_dim))),
          .path = GemmPathOf(plan)};
}

/// Runs all items: each thread, of as many as have a slot of `scratch`, makes an Item on its slot and takes items. In
/// the first run each thread has some for certain: all items have the same shapes, and so it makes its kernels of them
/// then.
template <class Item, class Parts, class Operands>
auto RunItems(const AttentionView& view, const Operands& all, float* scratch, bool& has_run) -> void {
  const int64_t items = view.sizes.items();
  const int64_t threads = std::min(view.slots, items);
  const int64_t floats_of_slot = Parts(view.sizes).total;
  const auto run = [&](int64_t slot, auto&& next) {
    Item body(view, all, scratch + slot * floats_of_slot);
    for (int64_t item = next(); item >= 0; item = next()) {
      body.Run(item);
    }
    EndProducts(view.path);
  };
  if (has_run) {
    ParallelTasks(items, threads, [&](int64_t slot, Tasks& tasks) { run(slot, [&] { return tasks.Next(); }); });
    return;
  }
  has_run = true;
  OnEachThread(threads, [&](int64_t slot, int64_t slots) {
    int64_t item = slot - slots;
    run(slot, [&] { return (item += slots) < items ? item : -1; });
  });
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
