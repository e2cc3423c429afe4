#include "runtime/kernels/cuda/cudnn/bind_sdpa.h"

#include "compiler/ops/cuda/attention.h"
#include "compiler/ops/op_support.h"
#include "runtime/device/cuda/stream.h"
#include "runtime/kernels/cuda/cudnn/sdpa.h"
#include "runtime/kernels/view_checks.h"

namespace shardc::cuda {

namespace {

/// Calls of one plan, chunk after chunk, in the same workspace.
class SdpaCalls {
 public:
  SdpaCalls(const SdpaShape& shape, std::shared_ptr<const SdpaPlan> plan) : shape_(shape), plan_(std::move(plan)) {}

  auto Run(CUstream_st* stream, const SdpaOperands& whole, void* workspace) const -> Status {
    const AttentionSizes& sizes = shape_.whole;
    for (int64_t sequence = 0; sequence < sizes.batch; sequence += shape_.sequences) {
      for (int64_t head = 0; head < sizes.kv_heads; head += shape_.kv_heads) {
        RETURN_IF_ERROR(plan_->Run(stream, ChunkOf(whole, sequence, head), workspace));
      }
    }
    return Success{};
  }

 private:
  /// Returns the operands from this sequence and this kv head on.
  auto ChunkOf(const SdpaOperands& whole, int64_t sequence, int64_t kv_head) const -> SdpaOperands {
    const AttentionSizes& sizes = shape_.whole;
    const int64_t query_row = sequence * sizes.heads + kv_head * sizes.heads_per_kv();
    const int64_t key_row = sequence * sizes.kv_heads + kv_head;
    const auto queries = [&](auto* first) { return Advanced<BFloat16>(first, query_row * sizes.head_dim); };
    const auto keys = [&](auto* first) { return Advanced<BFloat16>(first, key_row * sizes.head_dim); };
    return {.q = queries(whole.q),
            .k = keys(whole.k),
            .v = keys(whole.v),
            .y = queries(whole.y),
            .lse = Advanced<float>(whole.lse, query_row * sizes.sequence),
            .dy = queries(whole.dy),
            .dq = queries(whole.dq),
            .dk = keys(whole.dk),
            .dv = keys(whole.dv)};
  }

  /// Moves a pointer on; null stays null.
  template <class Element, class Void>
  static auto Advanced(Void* first, int64_t elements) -> Void* {
    using Pointer = std::conditional_t<std::is_const_v<Void>, const Element*, Element*>;
    return first == nullptr ? nullptr : static_cast<Pointer>(first) + elements;
  }

  SdpaShape shape_;
  std::shared_ptr<const SdpaPlan> plan_;
};

/// Makes the calls of an op whose scratch has so many bytes. Errors: those of the library; InternalFault if it needs
/// more.
auto MakeCalls(const SdpaShape& shape, int64_t scratch_bytes) -> ErrorOr<SdpaCalls> {
  ErrorOr<std::shared_ptr<const SdpaPlan>> plan = SdpaPlan::Make(shape);
  RETURN_IF_ERROR(plan);
  FAIL_IF((*plan)->WorkspaceBytes() > scratch_bytes, ExitCode::InternalFault,
          "cuDNN needs {} B of workspace for attention, the plan has {} B", (*plan)->WorkspaceBytes(), scratch_bytes);
  return SdpaCalls(shape, *plan);
}

auto Failing(const Error& error) -> Kernel {
  return [error](const Moment&) -> Status { return error; };
}

}  // namespace

auto BindSdpa(const op::Attention& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  const ErrorOr<SdpaCalls> calls =
      MakeCalls({.pass = SdpaPass::Forward, .whole = sizes, .sequences = sizes.batch, .kv_heads = sizes.kv_heads},
                BytesOf(plan, op.scratch).value);
  if (!calls) {
    return Failing(calls.error());
  }
  return [calls = *calls, stream = StreamOf(binder.queue()), q = CheckedView<BFloat16>(binder, op.q),
          k = CheckedView<BFloat16>(binder, op.k), v = CheckedView<BFloat16>(binder, op.v),
          y = CheckedView<BFloat16>(binder, op.y), lse = CheckedView<float>(binder, op.lse),
          scratch = binder.ViewOf(op.scratch)](const Moment& moment) -> Status {
    return calls.Run(stream,
                     {.q = q.At<void>(moment),
                      .k = k.At<void>(moment),
                      .v = v.At<void>(moment),
                      .y = y.At<void>(moment),
                      .lse = lse.At<void>(moment)},
                     scratch.At<void>(moment));
  };
}

auto BindSdpa(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  const Plan& plan = binder.plan();
  const AttentionSizes sizes = AttentionSizesOf(plan, op.q, op.k, op.head_dim);
  const CudaAttention cut = CudaAttentionOf(plan, op.q, op.k, op.starts, op.head_dim);
  const ErrorOr<SdpaCalls> calls = MakeCalls({.pass = SdpaPass::Backward,
                                              .whole = sizes,
                                              .sequences = cut.chunk_sequences(),
                                              .kv_heads = cut.chunk_kv_heads(),
                                              .deterministic = plan.run.deterministic},
                                             BytesOf(plan, op.scratch).value);
  if (!calls) {
    return Failing(calls.error());
  }
  return [calls = *calls, stream = StreamOf(binder.queue()), dy = CheckedView<BFloat16>(binder, op.dy),
          q = CheckedView<BFloat16>(binder, op.q), k = CheckedView<BFloat16>(binder, op.k),
          v = CheckedView<BFloat16>(binder, op.v), y = CheckedView<BFloat16>(binder, op.y),
          lse = CheckedView<float>(binder, op.lse), dq = CheckedView<BFloat16>(binder, op.dq),
          dk = CheckedView<BFloat16>(binder, op.dk), dv = CheckedView<BFloat16>(binder, op.dv),
          scratch = binder.ViewOf(op.scratch)](const Moment& moment) -> Status {
    return calls.Run(stream,
                     {.q = q.At<void>(moment),
                      .k = k.At<void>(moment),
                      .v = v.At<void>(moment),
                      .y = y.At<void>(moment),
                      .lse = lse.At<void>(moment),
                      .dy = dy.At<void>(moment),
                      .dq = dq.At<void>(moment),
                      .dk = dk.At<void>(moment),
                      .dv = dv.At<void>(moment)},
                     scratch.At<void>(moment));
  };
}

}  // namespace shardc::cuda
