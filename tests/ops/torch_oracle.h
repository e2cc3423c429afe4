// LibTorch's autograd in f64, with plain vectors as its interface: the only file of the kernel tests that pays for its
// headers.
#pragma once

#include <cstdint>
#include <vector>

namespace shardc {

using Numbers = std::vector<double>;

struct AttentionShape {
  int64_t sequence = 0;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};
struct AttentionResult {
  Numbers y;
  Numbers lse;
  Numbers dq;
  Numbers dk;
  Numbers dv;
};
/// Shapes: q, dy [S, B, A*D]; k, v [S, B, K*D]; lse [B, A, S]; starts [S, B], the first position of the document of
/// each, or empty if each sequence is one document.
auto TorchAttention(const AttentionShape& shape, const Numbers& q, const Numbers& k, const Numbers& v,
                    const Numbers& dy, const std::vector<int32_t>& starts = {}) -> AttentionResult;

struct RmsNormResult {
  Numbers y;
  Numbers rstd;
  Numbers dx;
  Numbers dweight;
};
auto TorchRmsNorm(int64_t rows, int64_t hidden, double eps, const Numbers& x, const Numbers& weight, const Numbers& dy)
    -> RmsNormResult;

struct LayerNormResult {
  Numbers y;
  Numbers mean;
  Numbers rstd;
  Numbers dx;
  Numbers dweight;
  Numbers dbias;
};
auto TorchLayerNorm(int64_t rows, int64_t hidden, double eps, const Numbers& x, const Numbers& weight,
                    const Numbers& bias, const Numbers& dy) -> LayerNormResult;

struct GeluResult {
  Numbers y;
  Numbers dx;
};
auto TorchGelu(bool tanh_form, const Numbers& x, const Numbers& dy) -> GeluResult;

struct CrossEntropyResult {
  double loss = 0;
  Numbers lse;
  /// Of loss / count.
  Numbers dlogits;
};
auto TorchCrossEntropy(int64_t rows, int64_t vocabulary, double count, const Numbers& logits,
                       const std::vector<int32_t>& targets) -> CrossEntropyResult;

/// Of each row.
auto TorchLogSumExp(int64_t rows, int64_t columns, const Numbers& logits) -> Numbers;

struct AdamwSettings {
  double lr = 0;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double weight_decay = 0;
  /// 0: no clipping.
  double max_norm = 0;
};
struct AdamwResult {
  Numbers parameter;
  Numbers exp_avg;
  Numbers exp_avg_sq;
  /// The norm before clipping, of each step.
  Numbers norms;
};
/// torch::optim::AdamW after clip_grad_norm_, one step a gradient.
auto TorchAdamw(const AdamwSettings& settings, const Numbers& parameter, const std::vector<Numbers>& gradients)
    -> AdamwResult;

struct SgdSettings {
  double lr = 0;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  /// 0: no clipping.
  double max_norm = 0;
};
struct SgdResult {
  Numbers parameter;
  /// Empty without momentum.
  Numbers momentum_buffer;
};
/// torch::optim::SGD with dampening 0 after clip_grad_norm_, one step per gradient.
auto TorchSgd(const SgdSettings& settings, const Numbers& parameter, const std::vector<Numbers>& gradients)
    -> SgdResult;

}  // namespace shardc
