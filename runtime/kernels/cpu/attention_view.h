// What attention and attention_backward share: sizes and strides of sequence-major heads, resolved at bind, and where
// the documents of a sequence begin.
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
  /// The op says where documents begin.
  bool has_starts = false;

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
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  return {.sizes = sizes,
          .slots = sizes.slots(plan.run.threads),
          .query_stride = sizes.batch * sizes.heads * sizes.head_dim,
          .key_stride = sizes.batch * sizes.kv_heads * sizes.head_dim,
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(op.head_dim))),
          .path = GemmPathOf(plan),
          .has_starts = op.starts.valid()};
}

/// Borders of the documents of one sequence; without starts it is one document.
class SequenceStarts {
 public:
  SequenceStarts() = default;
  /// Takes null for an op without starts.
  SequenceStarts(const int32_t* starts_SB, const AttentionSizes& sizes, int64_t batch)
      : starts_S_(starts_SB == nullptr ? nullptr : starts_SB + batch),
        stride_(sizes.batch),
        sequence_(sizes.sequence) {}

  auto At(int64_t position) const -> int64_t { return starts_S_ == nullptr ? 0 : starts_S_[position * stride_]; }

  /// Returns the end of the positions whose documents begin before `key`. Requires: that of position `first` does.
  auto EndOf(int64_t first, int64_t key) const -> int64_t {
    int64_t seen = first;
    int64_t end = sequence_;
    while (starts_S_ != nullptr && end - seen > 1) {
      const int64_t middle = seen + (end - seen) / 2;
      (At(middle) < key ? seen : end) = middle;
    }
    return end;
  }

  /// Returns what the queries from `query` on see of the keys from `key` on.
  auto Seen(int64_t query, int64_t rows, int64_t key) const -> SeenColumns {
    SeenColumns seen{.visible = query - key + 1};
    if (At(query + rows - 1) > key) {
      seen.starts_R = starts_S_ + query * stride_;
      seen.starts_stride = stride_;
      seen.position = key;
    }
    return seen;
  }

 private:
  const int32_t* starts_S_ = nullptr;
  int64_t stride_ = 0;
  int64_t sequence_ = 0;
};

/// Calls function(rows, columns) for each size of a tile of scores that starts can make: some whole tiles of queries
/// wide, or as much less as the last one lacks.
template <class Function>
auto ForTileSizes(const AttentionSizes& sizes, int64_t query_tile, const Function& function) -> void {
  const int64_t most = std::min(sizes.blocks.attention_key_tile, sizes.sequence);
  const int64_t last = sizes.sequence % query_tile;
  for (int64_t columns = query_tile; columns <= most; columns += query_tile) {
    function(query_tile, columns);
    if (last > 0) {
      function(last, columns);
    }
  }
  for (int64_t columns = last; last > 0 && columns <= most; columns += query_tile) {
    function(last, columns);
  }
}

/// Runs all items: each thread, of as many as have a slot of `scratch`, makes an Item on its slot and takes items. In
/// the first run each thread has some for certain: it makes its kernels of products then. All items have the same
/// shapes, but those that starts cut, which Prepare makes.
template <class Item, class Parts, class Operands>
auto RunItems(const AttentionView& view, const Operands& all, float* scratch, bool& has_run) -> void {
  const int64_t items = view.sizes.items();
  const int64_t threads = std::min(view.slots, items);
  const int64_t floats_of_slot = Parts(view.sizes).total;
  const auto run = [&](int64_t slot, auto&& next) {
    Item body(view, all, scratch + slot * floats_of_slot);
    if (view.has_starts && !has_run) {
      body.Prepare();
    }
    for (int64_t item = next(); item >= 0; item = next()) {
      body.Run(item);
    }
    EndProducts(view.path);
  };
  if (has_run) {
    ParallelTasks(items, threads, [&](int64_t slot, Tasks& tasks) { run(slot, [&] { return tasks.Next(); }); });
    return;
  }
  OnEachThread(threads, [&](int64_t slot, int64_t slots) {
    int64_t item = slot - slots;
    run(slot, [&] { return (item += slots) < items ? item : -1; });
  });
  has_run = true;
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
