// The oracle of the parity tests: a Llama, a Qwen2 or a Qwen3 of plain LibTorch ops with autograd, clip_grad_norm_ and
// AdamW, in f64, f32 or bf16, with plain vectors as its interface. Its source file is the only one here that pays for
// LibTorch's headers.
//
// Source: huggingface/transformers models/llama/modeling_llama.py: names, layouts, half-split rotary positions;
// models/qwen2/modeling_qwen2.py: Qwen2Attention, whose q_proj, k_proj and v_proj have biases and whose o_proj has
// none; models/qwen3/modeling_qwen3.py: Qwen3Attention, with q_norm and k_norm over head_dim before the rotation.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace shardc {

using Numbers = std::vector<double>;
/// Whole tensors, row-major, by parameter name.
using NamedNumbers = std::map<std::string, Numbers>;

/// A further head: heads.NAME.weight [vocab, hidden], and its part in the loss.
struct HeadShape {
  std::string name;
  int64_t vocab = 0;
  double weight = 1;
};

struct LlamaShape {
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
  int64_t ffn = 0;
  int64_t vocab = 0;
  double rope_theta = 0;
  /// Radians a position, of each pair; empty: by rope_theta.
  Numbers rope_frequencies;
  double norm_eps = 0;
  bool tied = false;
  /// As in Qwen2: a bias after the projections to queries, keys and values.
  bool attention_bias = false;
  /// As in Qwen3: a norm over each head of queries and keys before their rotation.
  bool head_norms = false;
  std::vector<HeadShape> loss_heads;
  /// By module: x W^T + scale (x A^T) B^T, with MODULE.lora_A.weight, of the module's own or of one that it shares A
  /// with, and MODULE.lora_B.weight.
  struct Adapter {
    double scale = 0;
    std::string shared = {};
  };
  std::map<std::string, Adapter> adapters = {};
};

/// All sequences of a step, one after another, in the order of their sample numbers.
struct TokenBatch {
  int64_t num_sequences = 0;
  int64_t seq = 0;
  std::vector<int32_t> tokens;
  /// -1 where no loss is taken.
  std::vector<int32_t> targets;
  /// Of further heads, by name.
  std::map<std::string, std::vector<int32_t>> head_targets;
  /// First places of the documents of each place in its sequence; empty where sequences are not split. The oracle takes
  /// a sequence as one document.
  std::vector<int32_t> starts = {};
};

/// BF16: parameters, activations and gradients; the loss is taken of logits in f32.
enum class Precision : uint8_t { F32, F64, BF16 };

/// Mean loss over the valid targets, and those of further heads by their weights, where these have any; without
/// gradients.
auto TorchLoss(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters, const TokenBatch& batch)
    -> double;

struct LossAndGradients {
  double loss = 0;
  NamedNumbers gradients;
};
/// The same, and its gradients.
auto TorchGradients(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters,
                    const TokenBatch& batch) -> LossAndGradients;

struct TorchGroup {
  double weight_decay = 0;
  double lr_scale = 1;
};
struct TorchTrainingSettings {
  /// SGD with momentum, and with no use of betas and eps.
  struct Sgd {
    double momentum = 0;
    bool nesterov = false;
  };
  std::optional<Sgd> sgd = {};
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  double clip_norm = 0;
  /// One a step.
  Numbers lrs;
  /// By parameter name; one that has none is frozen.
  std::map<std::string, TorchGroup> groups;
};
struct TorchTraining {
  Numbers losses;
  /// Before clipping.
  Numbers grad_norms;
  NamedNumbers parameters;
};
/// A step a batch: gradients, torch::nn::utils::clip_grad_norm_, torch::optim::AdamW, or SGD.
auto TorchTrain(Precision precision, const LlamaShape& shape, const NamedNumbers& parameters,
                const std::vector<TokenBatch>& batches, const TorchTrainingSettings& settings) -> TorchTraining;

}  // namespace shardc
