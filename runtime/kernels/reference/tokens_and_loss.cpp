// N tokens, H hidden, V vocabulary.
#include "runtime/kernels/reference/tensor.h"

#include "runtime/kernels/cpu/token_range.h"

namespace shardc::reference {

auto Bind(const op::Embedding& op, Binder& binder) -> Kernel {
  const Matrix table = AsMatrix(binder.plan(), op.weight);
  return MakeKernel([tokens = Elements(binder, op.tokens), ids = Resolve<const int32_t>(binder, op.tokens),
                     weight = Elements(binder, op.weight), y = Elements(binder, op.y),
                     vocabulary = table.rows](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), tokens.num_elements(), 0, vocabulary));
    y.Write(moment, weight.Read(moment).index_select(0, tokens.ReadIndices(moment)));
    return Success{};
  });
}

auto Bind(const op::EmbeddingBackward& op, Binder& binder) -> Kernel {
  const Matrix table = AsMatrix(binder.plan(), op.dweight);
  return MakeKernel([tokens = Elements(binder, op.tokens), ids = Resolve<const int32_t>(binder, op.tokens),
                     dy = Elements(binder, op.dy), dweight = Elements(binder, op.dweight),
                     adds = AddsOnto(binder, op.dweight, op.dweight_onto), table](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), tokens.num_elements(), 0, table.rows));
    const at::Tensor sums_VH = at::zeros({table.rows, table.columns}, at::kDouble);
    dweight.Write(moment, sums_VH.index_add(0, tokens.ReadIndices(moment), dy.ReadRows(moment)), adds);
    return Success{};
  });
}

auto Bind(const op::CountValid& op, Binder& binder) -> Kernel {
  return MakeKernel([targets = Elements(binder, op.targets), count = Elements(binder, op.count),
                     adds = AddsOnto(binder, op.count, op.count_onto)](const Moment& moment) {
    count.Write(moment, targets.InPlace(moment).ge(0).sum().to(at::kDouble), adds);
  });
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
    const at::Tensor picked_N = logits_NV.gather(1, targets_N.clamp_min(0).unsqueeze(1)).squeeze(1);
    lse.Write(moment, lse_N);
    loss.Write(moment, (lse_N - picked_N).masked_fill(targets_N.lt(0), 0).sum(), adds);
    return Success{};
  });
}

auto Bind(const op::CrossEntropyBackward& op, Binder& binder) -> Kernel {
  const Matrix size = AsMatrix(binder.plan(), op.logits);
  CheckSamePlace(binder, op.dlogits, op.logits);
  return MakeKernel([dlogits = Elements(binder, op.dlogits), targets = Elements(binder, op.targets),
                     ids = Resolve<const int32_t>(binder, op.targets), lse = Elements(binder, op.lse),
                     count = Resolve<const double>(binder, op.count), size](const Moment& moment) -> Status {
    RETURN_IF_ERROR(CheckTokens(ids.At(moment), size.rows, -1, size.columns));
    const double valid = *count.At(moment);
    const at::Tensor targets_N1 = targets.ReadIndices(moment).unsqueeze(1);
    const at::Tensor p_NV = (dlogits.ReadRows(moment) - lse.Read(moment).reshape({-1, 1})).exp();
    const at::Tensor onehot_NV =
        at::zeros({size.rows, size.columns}, at::kDouble).scatter(1, targets_N1.clamp_min(0), 1.0);
    const at::Tensor gradient_NV = (p_NV - onehot_NV) / (valid > 0 ? valid : 1);
    dlogits.Write(moment, valid > 0 ? gradient_NV.masked_fill(targets_N1.lt(0), 0) : gradient_NV.mul(0));
    return Success{};
  });
}

}  // namespace shardc::reference
