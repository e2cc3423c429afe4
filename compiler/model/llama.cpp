// Llama: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU feed-forward layer.
//
// Source: Touvron et al. 2023, "LLaMA"; names and layouts as huggingface/transformers models/llama.
#include "compiler/model/forward_builder.h"

namespace shardc {

static auto LayerPrefix(int64_t layer) -> std::string { return fmt::format("model.layers.{}.", layer); }

static auto HeadParameter(const LossHeadSize& head) -> std::string { return fmt::format("heads.{}.weight", head.name); }

static auto LlamaParameters(const ModelSizes& m) -> std::vector<ParameterSpec> {
  const int64_t q_width = m.heads * m.head_dim;
  const int64_t kv_width = m.kv_heads * m.head_dim;
  std::vector<ParameterSpec> specs{
      {"model.embed_tokens.weight", {m.vocab, m.hidden}, -1, 0, m.tied ? Side::Both : Side::Before}};
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    const auto add = [&](std::string_view name, Dims shape) {
      specs.push_back({fmt::format("{}{}.weight", LayerPrefix(layer), name), std::move(shape), layer});
    };
    const auto add_projection = [&](std::string_view module, std::string_view projection, Dims shape, int64_t cut_dim) {
      add(fmt::format("{}.{}", module, projection), std::move(shape));
      specs.back().cut_dim = cut_dim;
      specs.back().projection = projection;
    };
    add("input_layernorm", {m.hidden});
    add_projection("self_attn", "q_proj", {q_width, m.hidden}, 0);
    add_projection("self_attn", "k_proj", {kv_width, m.hidden}, 0);
    add_projection("self_attn", "v_proj", {kv_width, m.hidden}, 0);
    add_projection("self_attn", "o_proj", {m.hidden, q_width}, 1);
    add("post_attention_layernorm", {m.hidden});
    add_projection("mlp", "gate_proj", {m.ffn, m.hidden}, 0);
    add_projection("mlp", "up_proj", {m.ffn, m.hidden}, 0);
    add_projection("mlp", "down_proj", {m.hidden, m.ffn}, 1);
  }
  specs.push_back({"model.norm.weight", {m.hidden}, -1, -1, Side::After});
  if (!m.tied) {
    specs.push_back({"lm_head.weight", {m.vocab, m.hidden}, -1, 0, Side::After});
  }
  for (const LossHeadSize& head : m.loss_heads) {
    specs.push_back({HeadParameter(head), {head.vocab, m.hidden}, -1, 0, Side::After});
  }
  return specs;
}

static auto Block(ForwardBuilder& f, const ModelSizes& m, ValueId x, const std::string& prefix) -> ValueId {
  const auto linear = [&](ValueId input, std::string_view name) {
    return f.Linear(input, f.Parameter(fmt::format("{}{}.weight", prefix, name)), std::string(name));
  };
  x = f.Enter(x, f.Parameter(prefix + "self_attn.o_proj.weight"));
  const ValueId a = f.RmsNorm(x, f.Parameter(prefix + "input_layernorm.weight"), m.norm_eps, "input_layernorm");
  const ValueId q = f.Rope(linear(a, "self_attn.q_proj"), m.head_dim);
  const ValueId k = f.Rope(linear(a, "self_attn.k_proj"), m.head_dim);
  const ValueId v = linear(a, "self_attn.v_proj");
  const ValueId attended = f.Attention(q, k, v, m.head_dim);
  const ValueId h = f.AddResidual(x, linear(attended, "self_attn.o_proj"));

  const ValueId b =
      f.RmsNorm(h, f.Parameter(prefix + "post_attention_layernorm.weight"), m.norm_eps, "post_attention_layernorm");
  const ValueId gate = linear(b, "mlp.gate_proj");
  const ValueId up = linear(b, "mlp.up_proj");
  return f.AddResidual(h, linear(f.Swiglu(gate, up), "mlp.down_proj"));
}

static auto LlamaForward(ForwardBuilder& f, const ModelSizes& m) -> ModelOutput {
  f.EnterLayer(-1, "model.");
  const ValueId embedding = f.Parameter("model.embed_tokens.weight");
  ValueId x = f.Embedding(f.tokens(), embedding);
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    f.EnterLayer(layer, LayerPrefix(layer));
    x = Block(f, m, x, LayerPrefix(layer));
  }
  f.EnterLayer(-1, "model.");
  x = f.RmsNorm(x, f.Parameter("model.norm.weight"), m.norm_eps, "norm");
  ModelOutput output{f.Head(x, m.tied ? embedding : f.Parameter("lm_head.weight"))};
  for (const LossHeadSize& head : m.loss_heads) {
    output.push_back(f.Head(x, f.Parameter(HeadParameter(head))));
  }
  return output;
}

const ModelFamily LlamaFamily{.parameters = LlamaParameters, .forward = LlamaForward};

}  // namespace shardc
