#include "tests/ops/torch_oracle.h"

#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardc {

static auto ToTensor(const Numbers& numbers, at::IntArrayRef shape) -> at::Tensor {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<double>());
  return tensor;
}

static auto ToNumbers(const at::Tensor& tensor) -> Numbers {
  const at::Tensor dense = tensor.detach().contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

auto TorchAttention(const AttentionShape& shape, const Numbers& q, const Numbers& k, const Numbers& v,
                    const Numbers& dy, const std::vector<int32_t>& starts) -> AttentionResult {
  const auto [s, b, a, kv, d] = shape;
  const at::Tensor q_SBA = ToTensor(q, {s, b, a * d}).requires_grad_();
  const at::Tensor k_SBK = ToTensor(k, {s, b, kv * d}).requires_grad_();
  const at::Tensor v_SBK = ToTensor(v, {s, b, kv * d}).requires_grad_();
  const auto by_head = [&](const at::Tensor& x, int64_t heads) {
    return x.view({s, b, heads, d}).permute({1, 2, 0, 3}).repeat_interleave(a / heads, 1);
  };
  at::Tensor hidden = at::ones({s, s}, at::kBool).triu(1);
  if (!starts.empty()) {
    // Blocks along the diagonal, of each sequence: a query and a key of one document have one start.
    const at::Tensor starts_BS = at::tensor(starts, at::kInt).view({s, b}).t();
    hidden = hidden.logical_or(starts_BS.unsqueeze(2) != starts_BS.unsqueeze(1)).unsqueeze(1);
  }
  const at::Tensor scores = at::matmul(by_head(q_SBA, a), by_head(k_SBK, kv).transpose(2, 3)) / std::sqrt(double(d));
  const at::Tensor masked = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor y =
      at::matmul(at::softmax(masked, -1), by_head(v_SBK, kv)).permute({2, 0, 1, 3}).reshape({s, b, a * d});
  y.backward(ToTensor(dy, {s, b, a * d}));
  return {.y = ToNumbers(y),
          .lse = ToNumbers(at::logsumexp(masked, -1)),
          .dq = ToNumbers(q_SBA.grad()),
          .dk = ToNumbers(k_SBK.grad()),
          .dv = ToNumbers(v_SBK.grad())};
}

auto TorchRmsNorm(int64_t rows, int64_t hidden, double eps, const Numbers& x, const Numbers& weight, const Numbers& dy)
    -> RmsNormResult {
  const at::Tensor x_NH = ToTensor(x, {rows, hidden}).requires_grad_();
  const at::Tensor weight_H = ToTensor(weight, {hidden}).requires_grad_();
  const at::Tensor y = at::rms_norm(x_NH, {hidden}, weight_H, eps);
  y.backward(ToTensor(dy, {rows, hidden}));
  return {.y = ToNumbers(y),
          .rstd = ToNumbers(at::rsqrt(x_NH.square().mean(-1) + eps)),
          .dx = ToNumbers(x_NH.grad()),
          .dweight = ToNumbers(weight_H.grad())};
}

auto TorchLayerNorm(int64_t rows, int64_t hidden, double eps, const Numbers& x, const Numbers& weight,
                    const Numbers& bias, const Numbers& dy) -> LayerNormResult {
  const at::Tensor x_NH = ToTensor(x, {rows, hidden}).requires_grad_();
  const at::Tensor weight_H = ToTensor(weight, {hidden}).requires_grad_();
  const at::Tensor bias_H = ToTensor(bias, {hidden}).requires_grad_();
  const at::Tensor y = at::layer_norm(x_NH, {hidden}, weight_H, bias_H, eps);
  y.backward(ToTensor(dy, {rows, hidden}));
  return {.y = ToNumbers(y),
          .mean = ToNumbers(x_NH.mean(-1)),
          .rstd = ToNumbers(at::rsqrt(x_NH.var(-1, /*unbiased=*/false) + eps)),
          .dx = ToNumbers(x_NH.grad()),
          .dweight = ToNumbers(weight_H.grad()),
          .dbias = ToNumbers(bias_H.grad())};
}

auto TorchGelu(bool tanh_form, const Numbers& x, const Numbers& dy) -> GeluResult {
  const auto size = static_cast<int64_t>(x.size());
  const at::Tensor x_N = ToTensor(x, {size}).requires_grad_();
  const at::Tensor y = at::gelu(x_N, tanh_form ? "tanh" : "none");
  y.backward(ToTensor(dy, {size}));
  return {.y = ToNumbers(y), .dx = ToNumbers(x_N.grad())};
}

auto TorchCrossEntropy(int64_t rows, int64_t vocabulary, double count, const Numbers& logits,
                       const std::vector<int32_t>& targets) -> CrossEntropyResult {
  const at::Tensor logits_NV = ToTensor(logits, {rows, vocabulary}).requires_grad_();
  const at::Tensor targets_N = at::empty({rows}, at::kLong);
  std::copy(targets.begin(), targets.end(), targets_N.data_ptr<int64_t>());
  const at::Tensor loss = torch::nn::functional::cross_entropy(
      logits_NV, targets_N, torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1).reduction(torch::kSum));
  (loss / count).backward();
  return {.loss = loss.item<double>(),
          .lse = ToNumbers(at::logsumexp(logits_NV, -1)),
          .dlogits = ToNumbers(logits_NV.grad())};
}

auto TorchLogSumExp(int64_t rows, int64_t columns, const Numbers& logits) -> Numbers {
  return ToNumbers(at::logsumexp(ToTensor(logits, {rows, columns}), -1));
}

/// One step per gradient, each clipped to `max_norm` where that is not 0; the norms before clipping.
static auto StepEach(torch::optim::Optimizer& optimizer, at::Tensor& tensor, double max_norm,
                     const std::vector<Numbers>& gradients) -> Numbers {
  Numbers norms;
  for (const Numbers& gradient : gradients) {
    tensor.mutable_grad() = ToTensor(gradient, {tensor.numel()});
    norms.push_back(tensor.grad().norm().item<double>());
    if (max_norm > 0) {
      torch::nn::utils::clip_grad_norm_({tensor}, max_norm);
    }
    optimizer.step();
  }
  return norms;
}

auto TorchAdamw(const AdamwSettings& settings, const Numbers& parameter, const std::vector<Numbers>& gradients)
    -> AdamwResult {
  const auto size = static_cast<int64_t>(parameter.size());
  at::Tensor tensor = ToTensor(parameter, {size}).requires_grad_();
  torch::optim::AdamW optimizer({tensor}, torch::optim::AdamWOptions(settings.lr)
                                              .betas({settings.beta1, settings.beta2})
                                              .eps(settings.eps)
                                              .weight_decay(settings.weight_decay));
  AdamwResult result;
  result.norms = StepEach(optimizer, tensor, settings.max_norm, gradients);
  const auto& state = static_cast<const torch::optim::AdamWParamState&>(*optimizer.state().begin()->second);
  result.parameter = ToNumbers(tensor);
  result.exp_avg = ToNumbers(state.exp_avg());
  result.exp_avg_sq = ToNumbers(state.exp_avg_sq());
  return result;
}

auto TorchSgd(const SgdSettings& settings, const Numbers& parameter, const std::vector<Numbers>& gradients)
    -> SgdResult {
  const auto size = static_cast<int64_t>(parameter.size());
  at::Tensor tensor = ToTensor(parameter, {size}).requires_grad_();
  torch::optim::SGD optimizer({tensor}, torch::optim::SGDOptions(settings.lr)
                                            .momentum(settings.momentum)
                                            .nesterov(settings.nesterov)
                                            .weight_decay(settings.weight_decay));
  StepEach(optimizer, tensor, settings.max_norm, gradients);
  SgdResult result{.parameter = ToNumbers(tensor), .momentum_buffer = {}};
  if (settings.momentum != 0) {
    const auto& state = static_cast<const torch::optim::SGDParamState&>(*optimizer.state().begin()->second);
    result.momentum_buffer = ToNumbers(state.momentum_buffer());
  }
  return result;
}

}  // namespace shardc
