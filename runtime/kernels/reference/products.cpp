// Attention in one piece: all scores of all heads at once. S positions, B batch, A heads of D, K kv heads.
#include <cmath>
#include <functional>
#include <limits>
#include <optional>

#include "runtime/kernels/reference/tensor.h"

namespace shardc::reference {

/// Returns op(a) op(b).
template <class Product>
static auto ProductOf(const Product& op, Binder& binder) -> std::function<at::Tensor(const Moment&)> {
  return [a = Elements(binder, op.a), b = Elements(binder, op.b), transpose_a = op.transpose_a,
          transpose_b = op.transpose_b](const Moment& moment) {
    const at::Tensor left = a.ReadRows(moment);
    const at::Tensor right = b.ReadRows(moment);
    return (transpose_a ? left.t() : left).matmul(transpose_b ? right.t() : right);
  };
}

auto Bind(const op::Matmul& op, Binder& binder) -> Kernel {
  return MakeKernel([product = ProductOf(op, binder), out = Elements(binder, op.out),
                     adds = AddsOnto(binder, op.out, op.out_onto)](const Moment& moment) {
    out.Write(moment, product(moment), adds);
  });
}

auto Bind(const op::MatmulAdd& op, Binder& binder) -> Kernel {
  return MakeKernel([product = ProductOf(op, binder), x = Elements(binder, op.x), out = Elements(binder, op.out)](
                        const Moment& moment) { out.Write(moment, x.ReadRows(moment) + product(moment)); });
}

/// [S, B, A * D] as [B, A, S, D].
static auto ByHead(const at::Tensor& x, int64_t head_dim) -> at::Tensor {
  return x.reshape({x.size(0), x.size(1), -1, head_dim}).permute({1, 2, 0, 3});
}

/// The reverse.
static auto BySequence(const at::Tensor& x) -> at::Tensor { return x.permute({2, 0, 1, 3}).flatten(2); }

/// [B, K, S, D] with each head repeated for the query heads of its group.
static auto ForQueryHeads(const at::Tensor& x, int64_t heads) -> at::Tensor {
  return x.repeat_interleave(heads / x.size(1), 1);
}

/// The sum over the query heads of each group.
static auto SumOfGroups(const at::Tensor& x, int64_t kv_heads) -> at::Tensor {
  return x.unflatten(1, {kv_heads, -1}).sum(2);
}

static auto Scale(int64_t head_dim) -> double { return 1 / std::sqrt(static_cast<double>(head_dim)); }

/// Borders of documents, if the op says them.
class Starts {
 public:
  Starts(Binder& binder, ValueId starts) {
    if (starts.valid()) {
      starts_SB_.emplace(binder, starts);
    }
  }

  /// Returns which keys a query does not see: those after it, and those of documents before its own. [S, S], or
  /// [B, 1, S, S].
  auto Hidden(const Moment& moment, int64_t sequence) const -> at::Tensor {
    const at::Tensor later = at::ones({sequence, sequence}, at::kBool).triu(1);
    if (!starts_SB_) {
      return later;
    }
    const at::Tensor keys = at::arange(sequence, at::kInt);
    return later.logical_or(keys < starts_SB_->InPlace(moment).t().unsqueeze(2)).unsqueeze(1);
  }

 private:
  std::optional<Elements> starts_SB_;
};

/// Returns the scaled scores [B, A, S, S], minus infinity if the key is hidden from the query.
static auto Scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& hidden) -> at::Tensor {
  return (q.matmul(k.transpose(2, 3)) * Scale(q.size(3))).masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

auto Bind(const op::Attention& op, Binder& binder) -> Kernel {
  return MakeKernel([q = Elements(binder, op.q), k = Elements(binder, op.k), v = Elements(binder, op.v),
                     starts = Starts(binder, op.starts), y = Elements(binder, op.y), lse = Elements(binder, op.lse),
                     head_dim = op.head_dim](const Moment& moment) {
    const at::Tensor queries = ByHead(q.Read(moment), head_dim);
    const int64_t heads = queries.size(1);
    const at::Tensor scores =
        Scores(queries, ForQueryHeads(ByHead(k.Read(moment), head_dim), heads), starts.Hidden(moment, queries.size(2)));
    const at::Tensor values = ForQueryHeads(ByHead(v.Read(moment), head_dim), heads);
    lse.Write(moment, scores.logsumexp(-1));
    y.Write(moment, BySequence(scores.softmax(-1).matmul(values)));
  });
}

/// From q, k, v and dy alone: y and lse are not needed where the probabilities are whole.
auto Bind(const op::AttentionBackward& op, Binder& binder) -> Kernel {
  return MakeKernel([dy = Elements(binder, op.dy), q = Elements(binder, op.q), k = Elements(binder, op.k),
                     v = Elements(binder, op.v), starts = Starts(binder, op.starts), dq = Elements(binder, op.dq),
                     dk = Elements(binder, op.dk), dv = Elements(binder, op.dv),
                     head_dim = op.head_dim](const Moment& moment) {
    const at::Tensor queries = ByHead(q.Read(moment), head_dim);
    const at::Tensor dys = ByHead(dy.Read(moment), head_dim);
    const at::Tensor kv_keys = ByHead(k.Read(moment), head_dim);
    const int64_t heads = queries.size(1);
    const int64_t kv_heads = kv_keys.size(1);
    const at::Tensor keys = ForQueryHeads(kv_keys, heads);
    const at::Tensor values = ForQueryHeads(ByHead(v.Read(moment), head_dim), heads);
    const at::Tensor p = Scores(queries, keys, starts.Hidden(moment, queries.size(2))).softmax(-1);
    const at::Tensor dp = dys.matmul(values.transpose(2, 3));
    const at::Tensor dscores = p * (dp - (dp * p).sum(-1, /*keepdim=*/true)) * Scale(head_dim);
    dq.Write(moment, BySequence(dscores.matmul(keys)));
    dk.Write(moment, BySequence(SumOfGroups(dscores.transpose(2, 3).matmul(queries), kv_heads)));
    dv.Write(moment, BySequence(SumOfGroups(p.transpose(2, 3).matmul(dys), kv_heads)));
  });
}

}  // namespace shardc::reference
