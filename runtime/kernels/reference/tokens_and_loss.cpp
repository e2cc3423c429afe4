// N tokens, H hidden, V vocabulary.
#include "runtime/kernels/reference/tensor.h"

#include "runtime/kernels/vocab_shard.h"

namespace shardc::reference {

/// The rows of this rank that ids name, 0 for those of other ranks; and where that is so.
static auto RowsHere(const at::Tensor& ids_N, const VocabShard& vocab) -> std::pair<at::Tensor, at::Tensor> {
  const at::Tensor elsewhere_N = ids_N.lt(vocab.first).logical_or(ids_N.ge(vocab.first + vocab.size));
  return {(ids_N - vocab.first).masked_fill(elsewhere_N, 0), elsewhere_N};
}

auto Bind(const op::Embedding& op, Binder& binder) -> Kernel {
  const Matrix table = AsMatrix(binder.plan(), op.weight);
  return MakeKernel([tokens = Elements(binder, op.tokens), ids = Resolve<const int32_t>(binder, op.tokens),
                     weight = Elements(binder, op.weight), y = Elements(binder, op.y),
                     vocab = VocabShardOf(binder, op.vocab_axes, table.rows)](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), tokens.num_elements(), 0, vocab.total));
    const auto [rows_N, elsewhere_N] = RowsHere(tokens.ReadIndices(moment), vocab);
    y.Write(moment, weight.Read(moment).index_select(0, rows_N).masked_fill(elsewhere_N.unsqueeze(1), 0));
    return Success{};
  });
}

auto Bind(const op::EmbeddingBackward& op, Binder& binder) -> Kernel {
  const Matrix table = AsMatrix(binder.plan(), op.dweight);
  return MakeKernel([tokens = Elements(binder, op.tokens), ids = Resolve<const int32_t>(binder, op.tokens),
                     dy = Elements(binder, op.dy), dweight = Elements(binder, op.dweight),
                     adds = AddsOnto(binder, op.dweight, op.dweight_onto), table,
                     vocab = VocabShardOf(binder, op.vocab_axes, table.rows)](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), tokens.num_elements(), 0, vocab.total));
    const auto [rows_N, elsewhere_N] = RowsHere(tokens.ReadIndices(moment), vocab);
    const at::Tensor sums_VH = at::zeros({table.rows, table.columns}, at::kDouble);
    const at::Tensor dy_NH = dy.ReadRows(moment).masked_fill(elsewhere_N.unsqueeze(1), 0);
    dweight.Write(moment, sums_VH.index_add(0, rows_N, dy_NH), adds);
    return Success{};
  });
}

auto Bind(const op::CountValid& op, Binder& binder) -> Kernel {
  return MakeKernel([targets = Elements(binder, op.targets), count = Elements(binder, op.count),
                     adds = AddsOnto(binder, op.count, op.count_onto)](const Moment& moment) {
    count.Write(moment, targets.InPlace(moment).ge(0).sum().to(at::kDouble), adds);
  });
}

static auto SumOfLosses(const at::Tensor& logits_NV, const at::Tensor& targets_N, const at::Tensor& lse_N)
    -> at::Tensor {
  const at::Tensor picked_N = logits_NV.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
  return (lse_N - picked_N).masked_fill(targets_N.lt(0), 0).sum();
}

auto Bind(const op::CrossEntropy& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  return MakeKernel([logits = Elements(binder, op.logits), targets = Elements(binder, op.targets),
                     ids = Resolve<const int32_t>(binder, op.targets), loss = Elements(binder, op.loss),
                     lse = Elements(binder, op.lse), adds = AddsOnto(binder, op.loss, op.loss_onto),
                     size](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), size.rows, -1, size.columns));
    const at::Tensor logits_NV = logits.ReadRows(moment);
    const at::Tensor targets_N = targets.ReadIndices(moment);
    const at::Tensor lse_N = logits_NV.logsumexp(-1);
    lse.Write(moment, lse_N);
    loss.Write(moment, SumOfLosses(logits_NV, targets_N, lse_N), adds);
    return Success{};
  });
}

auto Bind(const op::LogSumExp& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  const int64_t vocabulary = VocabShardOf(binder, op.vocab_axes, size.columns, op.head).size;
  return MakeKernel(
      [logits = Elements(binder, op.logits), lse = Elements(binder, op.lse), vocabulary](const Moment& moment) {
        lse.Write(moment, logits.ReadRows(moment).narrow(1, 0, vocabulary).logsumexp(-1));
      });
}

auto Bind(const op::ShardedCrossEntropy& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  return MakeKernel([logits = Elements(binder, op.logits), targets = Elements(binder, op.targets),
                     ids = Resolve<const int32_t>(binder, op.targets), parts = Elements(binder, op.parts),
                     loss = Elements(binder, op.loss), lse = Elements(binder, op.lse),
                     adds = AddsOnto(binder, op.loss, op.loss_onto),
                     vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head), size,
                     ranks = binder.plan().mesh.size(op.vocab_axes)](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), size.rows, -1, vocab.total));
    const auto [columns_N, elsewhere_N] = RowsHere(targets.ReadIndices(moment), vocab);
    const at::Tensor lse_N = parts.Read(moment).reshape({ranks, size.rows}).logsumexp(0);
    const at::Tensor picked_N = logits.ReadRows(moment).gather(1, columns_N.unsqueeze(1)).squeeze(1);
    lse.Write(moment, lse_N);
    loss.Write(moment, (lse_N - picked_N).masked_fill(elsewhere_N, 0).sum(), adds);
    return Success{};
  });
}

/// Returns (softmax - onehot) / valid, 0 where there is no target and where valid is 0.
static auto GradientOfLogits(const at::Tensor& logits_NV, const at::Tensor& targets_N, const at::Tensor& lse_N,
                             double valid, const VocabShard& vocab) -> at::Tensor {
  const auto [columns_N, elsewhere_N] = RowsHere(targets_N, vocab);
  at::Tensor p_NV = (logits_NV - lse_N.reshape({-1, 1})).exp();
  p_NV.narrow(1, vocab.size, p_NV.size(1) - vocab.size).zero_();
  const at::Tensor here_N1 = elsewhere_N.logical_not().to(at::kDouble).unsqueeze(1);
  const at::Tensor onehot_NV = at::zeros(p_NV.sizes(), at::kDouble).scatter(1, columns_N.unsqueeze(1), here_N1);
  const at::Tensor gradient_NV = (p_NV - onehot_NV) / (valid > 0 ? valid : 1);
  return valid > 0 ? gradient_NV.masked_fill(targets_N.lt(0).unsqueeze(1), 0) : gradient_NV.mul(0);
}

auto Bind(const op::CrossEntropyBackward& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  CheckSameBytes(binder, op.dlogits, op.logits);
  return MakeKernel(
      [dlogits = Elements(binder, op.dlogits), targets = Elements(binder, op.targets),
       ids = Resolve<const int32_t>(binder, op.targets), lse = Elements(binder, op.lse),
       count = Resolve<const double>(binder, op.count), size,
       vocab = VocabShardOf(binder, op.vocab_axes, size.columns, op.head)](const Moment& moment) -> Status {
        RETURN_IF_ERROR(CheckTokens(ids.At(moment), size.rows, -1, vocab.total));
        dlogits.Write(moment, GradientOfLogits(dlogits.ReadRows(moment), targets.ReadIndices(moment), lse.Read(moment),
                                               *count.At(moment), vocab));
        return Success{};
      });
}

auto Bind(const op::CrossEntropyAndGradient& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  CheckSameBytes(binder, op.dlogits, op.logits);
  return MakeKernel([dlogits = Elements(binder, op.dlogits), targets = Elements(binder, op.targets),
                     ids = Resolve<const int32_t>(binder, op.targets), count = Resolve<const double>(binder, op.count),
                     loss = Elements(binder, op.loss), adds = AddsOnto(binder, op.loss, op.loss_onto),
                     vocab = VocabShardOf(binder, {}, size.columns, op.head), size](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), size.rows, -1, size.columns));
    const at::Tensor logits_NV = dlogits.ReadRows(moment);
    const at::Tensor targets_N = targets.ReadIndices(moment);
    const at::Tensor lse_N = logits_NV.logsumexp(-1);
    loss.Write(moment, SumOfLosses(logits_NV, targets_N, lse_N), adds);
    dlogits.Write(moment, GradientOfLogits(logits_NV, targets_N, lse_N, *count.At(moment), vocab));
    return Success{};
  });
}

}  // namespace shardc::reference
