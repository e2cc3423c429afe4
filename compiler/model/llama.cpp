// Llama: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU feed-forward layer.
//
// Source: Touvron et al. 2023, "LLaMA"; names and layouts as huggingface/transformers models/llama.
#include "compiler/model/decoder.h"

namespace shardc {

static auto LlamaBlock(const ModelSizes& m) -> ParameterSpecs {
  using enum ParameterKind;
  const int64_t q_width = m.heads * m.head_dim;
  const int64_t kv_width = m.kv_heads * m.head_dim;
  ParameterSpecs specs{NormSpec("input_layernorm", m.hidden),
                       ProjectionSpec("self_attn", "q_proj", AttentionIn, q_width, m.hidden),
                       ProjectionSpec("self_attn", "k_proj", AttentionIn, kv_width, m.hidden),
                       ProjectionSpec("self_attn", "v_proj", AttentionIn, kv_width, m.hidden),
                       ProjectionSpec("self_attn", "o_proj", AttentionOut, m.hidden, q_width),
                       NormSpec("post_attention_layernorm", m.hidden)};
  const ParameterSpecs swiglu = SwigluSpecs(m);
  specs.insert(specs.end(), swiglu.begin(), swiglu.end());
  return specs;
}

static auto LlamaAttention(const BlockBuilder& block, ValueId x) -> ValueId {
  ForwardBuilder& f = block.f;
  const int64_t head_dim = block.m.head_dim;
  const ValueId q = f.Rope(block.Linear(x, "self_attn.q_proj"), head_dim);
  const ValueId k = f.Rope(block.Linear(x, "self_attn.k_proj"), head_dim);
  const ValueId v = block.Linear(x, "self_attn.v_proj");
  return f.Attention(q, k, v, head_dim);
}

static auto LlamaForward(ForwardBuilder& f, const ModelSizes& m) -> ModelOutput {
  return DecoderForward(f, m, LlamaAttention);
}

const ModelFamily LlamaFamily{.outside = DecoderSpecs, .block = LlamaBlock, .forward = LlamaForward};

}  // namespace shardc
