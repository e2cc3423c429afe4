// x_BSH: B sequences, S positions, H hidden; A heads, K kv heads, D head dim, V vocabulary.
#include "tests/parity/torch_llama.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

namespace shardc {

static auto TypeOf(Precision precision) -> at::ScalarType {
  switch (precision) {
    case Precision::F32: return at::kFloat;
    case Precision::F64: return at::kDouble;
    case Precision::BF16: return at::kBFloat16;
  }
  TORCH_CHECK(false, "precision ", static_cast<int>(precision));
}

static auto ToDoubles(const at::Tensor& tensor) -> Numbers {
  const at::Tensor dense = tensor.detach().to(at::kDouble).contiguous();
  return {dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel()};
}

static auto ToIds(const std::vector<int32_t>& ids, int64_t rows, int64_t columns) -> at::Tensor {
  at::Tensor tensor = at::empty({rows, columns}, at::kLong);
  TORCH_CHECK(static_cast<int64_t>(ids.size()) == tensor.numel(), ids.size(), " ids for ", tensor.sizes());
  std::copy(ids.begin(), ids.end(), tensor.data_ptr<int64_t>());
  return tensor;
}

namespace {

class TorchLlama {
 public:
  TorchLlama(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters)
      : type_(TypeOf(precision)), shape_(shape) {
    // Its tensors are so small that threads cost more than they give.
    at::set_num_threads(1);
    for (const auto& [name, numbers] : parameters) {
      at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())}, at::kDouble);
      std::copy(numbers.begin(), numbers.end(), tensor.data_ptr<double>());
      tensors_[name] = tensor.to(type_).requires_grad_();
    }
  }

  /// Leaves, flat.
  auto tensors() -> std::map<std::string, at::Tensor>& { return tensors_; }

  auto Loss(const TokenBatch& batch) const -> at::Tensor {
    const at::Tensor x = Hidden(ToIds(batch.tokens, batch.num_sequences, batch.seq));
    const std::string own = shape_.tied ? "model.embed_tokens.weight" : "lm_head.weight";
    const auto ids = [&](const std::vector<int32_t>& targets) {
      return ToIds(targets, batch.num_sequences, batch.seq).reshape({-1});
    };
    const at::Tensor own_targets_N = ids(batch.targets);
    const at::ScalarType loss_type = LossType();
    at::Tensor loss = LossSum(x, own, shape_.vocab, own_targets_N) / own_targets_N.ge(0).sum().to(loss_type);
    for (const HeadShape& head : shape_.loss_heads) {
      // One head alone may have a mean of nothing; as terms of a sum they count for nothing.
      loss = at::nan_to_num(loss, 0.0);
      const at::Tensor targets_N = ids(batch.head_targets.at(head.name));
      const at::Tensor sum = LossSum(x, "heads." + head.name + ".weight", head.vocab, targets_N);
      loss = loss + head.weight * sum / targets_N.ge(0).sum().clamp_min(1).to(loss_type);
    }
    return loss;
  }

 private:
  auto LossType() const -> at::ScalarType { return type_ == at::kBFloat16 ? at::kFloat : type_; }
  auto LossSum(const at::Tensor& x_BSH, const std::string& head, int64_t vocab, const at::Tensor& targets_N) const
      -> at::Tensor {
    const at::Tensor logits = at::matmul(x_BSH, Weight(head, {vocab, shape_.hidden}).t());
    return torch::nn::functional::cross_entropy(
        logits.reshape({-1, vocab}).to(LossType()), targets_N,
        torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1).reduction(torch::kSum));
  }
  auto Weight(const std::string& name, at::IntArrayRef dims) const -> at::Tensor {
    const auto tensor = tensors_.find(name);
    TORCH_CHECK(tensor != tensors_.end(), "no parameter ", name);
    return tensor->second.view(dims);
  }
  auto Linear(const at::Tensor& x, const std::string& name, int64_t width) const -> at::Tensor {
    const at::Tensor y = at::matmul(x, Weight(name + ".weight", {width, x.size(-1)}).t());
    const auto found = shape_.adapters.find(name);
    if (found == shape_.adapters.end()) {
      return y;
    }
    const auto& [scale, shared] = found->second;
    const at::Tensor low =
        at::matmul(x, Weight((shared.empty() ? name : shared) + ".lora_A.weight", {-1, x.size(-1)}).t());
    return y + scale * at::matmul(low, Weight(name + ".lora_B.weight", {width, -1}).t());
  }
  auto Norm(const at::Tensor& x, const std::string& name) const -> at::Tensor {
    const at::Tensor rstd = at::rsqrt(x.square().mean(-1, true) + shape_.norm_eps);
    return x * rstd * Weight(name + ".weight", {x.size(-1)});
  }

  /// Angles in f64 for both types: the f32 model's own error is what f32 arithmetic makes of the same numbers.
  auto Rope(const at::Tensor& x_BASD) const -> at::Tensor {
    const int64_t half = shape_.head_dim / 2;
    const at::Tensor exponents = at::arange(half, at::kDouble) / static_cast<double>(half);
    const at::Tensor frequencies = shape_.rope_frequencies.empty() ? at::pow(at::Scalar(shape_.rope_theta), -exponents)
                                                                   : at::tensor(shape_.rope_frequencies, at::kDouble);
    const at::Tensor angles_Sh = at::outer(at::arange(x_BASD.size(2), at::kDouble), frequencies);
    const at::Tensor angles_SD = at::cat({angles_Sh, angles_Sh}, -1);
    const at::Tensor turned = at::cat({-x_BASD.narrow(-1, half, half), x_BASD.narrow(-1, 0, half)}, -1);
    return x_BASD * angles_SD.cos().to(type_) + turned * angles_SD.sin().to(type_);
  }

  auto Attention(const at::Tensor& x_BSH, const std::string& prefix) const -> at::Tensor {
    const int64_t batch = x_BSH.size(0);
    const int64_t seq = x_BSH.size(1);
    const auto heads = [&](const std::string& name, int64_t count) {
      const int64_t width = count * shape_.head_dim;
      at::Tensor projected = Linear(x_BSH, prefix + name + "_proj", width);
      if (shape_.attention_bias) {
        projected = projected + Weight(prefix + name + "_proj.bias", {width});
      }
      at::Tensor of_heads = projected.view({batch, seq, count, shape_.head_dim});
      if (shape_.head_norms && name != "v") {
        of_heads = Norm(of_heads, prefix + name + "_norm");
      }
      return of_heads.transpose(1, 2);
    };
    const int64_t repeats = shape_.heads / shape_.kv_heads;
    const at::Tensor q_BASD = Rope(heads("q", shape_.heads));
    const at::Tensor k_BASD = Rope(heads("k", shape_.kv_heads)).repeat_interleave(repeats, 1);
    const at::Tensor v_BASD = heads("v", shape_.kv_heads).repeat_interleave(repeats, 1);
    const at::Tensor future_SS = at::ones({seq, seq}, at::kBool).triu(1);
    const at::Tensor scores =
        at::matmul(q_BASD, k_BASD.transpose(2, 3)) / std::sqrt(static_cast<double>(shape_.head_dim));
    const at::Tensor weights = at::softmax(scores.masked_fill(future_SS, -std::numeric_limits<double>::infinity()), -1);
    const at::Tensor mixed =
        at::matmul(weights, v_BASD).transpose(1, 2).reshape({batch, seq, shape_.heads * shape_.head_dim});
    return Linear(mixed, prefix + "o_proj", shape_.hidden);
  }

  auto FeedForward(const at::Tensor& x, const std::string& prefix) const -> at::Tensor {
    const at::Tensor gate = at::silu(Linear(x, prefix + "gate_proj", shape_.ffn));
    return Linear(gate * Linear(x, prefix + "up_proj", shape_.ffn), prefix + "down_proj", shape_.hidden);
  }

  /// The last hidden state.
  auto Hidden(const at::Tensor& tokens_BS) const -> at::Tensor {
    const at::Tensor embedding_VH = Weight("model.embed_tokens.weight", {shape_.vocab, shape_.hidden});
    at::Tensor x = at::embedding(embedding_VH, tokens_BS);
    for (int64_t layer = 0; layer < shape_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      x = x + Attention(Norm(x, prefix + "input_layernorm"), prefix + "self_attn.");
      x = x + FeedForward(Norm(x, prefix + "post_attention_layernorm"), prefix + "mlp.");
    }
    return Norm(x, "model.norm");
  }

  at::ScalarType type_;
  LlamaShape shape_;
  std::map<std::string, at::Tensor> tensors_;
};

}  // namespace

auto TorchLoss(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters, const TokenBatch& batch)
    -> double {
  const at::NoGradGuard no_gradients;
  return TorchLlama(precision, shape, parameters).Loss(batch).item<double>();
}

auto TorchGradients(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters,
                    const TokenBatch& batch) -> LossAndGradients {
  TorchLlama model(precision, shape, parameters);
  const at::Tensor loss = model.Loss(batch);
  loss.backward();
  LossAndGradients result{.loss = loss.item<double>(), .gradients = {}};
  for (const auto& [name, tensor] : model.tensors()) {
    TORCH_CHECK(tensor.grad().defined(), name, " is not part of the oracle's model");
    result.gradients[name] = ToDoubles(tensor.grad());
  }
  return result;
}

static auto OptionsOf(const TorchTrainingSettings& settings, double weight_decay)
    -> std::unique_ptr<torch::optim::OptimizerOptions> {
  if (settings.sgd) {
    auto options = std::make_unique<torch::optim::SGDOptions>(0);
    options->momentum(settings.sgd->momentum).nesterov(settings.sgd->nesterov).weight_decay(weight_decay);
    return options;
  }
  auto options = std::make_unique<torch::optim::AdamWOptions>();
  options->betas({settings.beta1, settings.beta2}).eps(settings.eps).weight_decay(weight_decay);
  return options;
}

auto TorchTrain(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters,
                const std::vector<TokenBatch>& batches, const TorchTrainingSettings& settings) -> TorchTraining {
  TorchLlama model(precision, shape, parameters);
  std::vector<at::Tensor> all;
  std::vector<torch::optim::OptimizerParamGroup> param_groups;
  std::vector<double> lr_scales;
  for (const auto& [name, tensor] : model.tensors()) {
    const auto group = settings.groups.find(name);
    if (group == settings.groups.end()) {
      tensor.set_requires_grad(false);
      continue;
    }
    param_groups.emplace_back(std::vector<at::Tensor>{tensor}, OptionsOf(settings, group->second.weight_decay));
    lr_scales.push_back(group->second.lr_scale);
    all.push_back(tensor);
  }
  std::unique_ptr<torch::optim::Optimizer> made;
  if (settings.sgd) {
    made = std::make_unique<torch::optim::SGD>(std::move(param_groups), torch::optim::SGDOptions(0));
  } else {
    made = std::make_unique<torch::optim::AdamW>(std::move(param_groups), torch::optim::AdamWOptions());
  }
  torch::optim::Optimizer& optimizer = *made;
  TorchTraining result;
  for (size_t step = 0; step < batches.size(); ++step) {
    for (size_t i = 0; i < lr_scales.size(); ++i) {
      optimizer.param_groups()[i].options().set_lr(settings.lrs[step] * lr_scales[i]);
    }
    optimizer.zero_grad();
    const at::Tensor loss = model.Loss(batches[step]);
    loss.backward();
    result.losses.push_back(loss.item<double>());
    result.grad_norms.push_back(torch::nn::utils::clip_grad_norm_(all, settings.clip_norm));
    optimizer.step();
  }
  for (const auto& [name, tensor] : model.tensors()) {
    result.parameters[name] = ToDoubles(tensor);
  }
  return result;
}

}  // namespace shardc
