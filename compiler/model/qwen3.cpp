// Qwen3: as Llama, with a norm over each head of queries and keys before their rotation.
//
// Source: Yang et al. 2025, "Qwen3 Technical Report"; names and layouts as huggingface/transformers models/qwen3.
#include "compiler/model/decoder.h"

namespace shardc {

static auto Qwen3Block(const ModelSizes& m) -> ParameterSpecs {
  using enum ParameterKind;
  const int64_t q_width = m.heads * m.head_dim;
  const int64_t kv_width = m.kv_heads * m.head_dim;
  ParameterSpecs specs{NormSpec("input_layernorm", m.hidden),
                       ProjectionSpec("self_attn", "q_proj", AttentionIn, q_width, m.hidden),
                       NormSpec("self_attn.q_norm", m.head_dim),
                       ProjectionSpec("self_attn", "k_proj", AttentionIn, kv_width, m.hidden),
                       NormSpec("self_attn.k_norm", m.head_dim),
                       ProjectionSpec("self_attn", "v_proj", AttentionIn, kv_width, m.hidden),
                       ProjectionSpec("self_attn", "o_proj", AttentionOut, m.hidden, q_width),
                       NormSpec("post_attention_layernorm", m.hidden)};
  const ParameterSpecs swiglu = SwigluSpecs(m);
  specs.insert(specs.end(), swiglu.begin(), swiglu.end());
  return specs;
}

static auto Qwen3Attention(const BlockBuilder& block, ValueId x) -> ValueId {
  ForwardBuilder& f = block.f;
  const int64_t head_dim = block.m.head_dim;
  const auto rotated = [&](std::string_view projection, std::string_view norm) {
    return f.Rope(block.HeadNorm(block.Linear(x, projection), norm), head_dim);
  };
  const ValueId q = rotated("self_attn.q_proj", "self_attn.q_norm");
  const ValueId k = rotated("self_attn.k_proj", "self_attn.k_norm");
  const ValueId v = block.Linear(x, "self_attn.v_proj");
  return f.Attention(q, k, v, head_dim);
}

static auto Qwen3Forward(ForwardBuilder& f, const ModelSizes& m) -> ModelOutput {
  return DecoderForward(f, m, Qwen3Attention);
}

const ModelFamily Qwen3Family{.outside = DecoderSpecs, .block = Qwen3Block, .forward = Qwen3Forward};

}  // namespace shardc
