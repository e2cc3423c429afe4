// Qwen2 and Qwen2.5: as Llama, with a bias after the projections to queries, keys and values.
//
// Source: Yang et al. 2024, "Qwen2 Technical Report"; names and layouts as huggingface/transformers models/qwen2.
#include "compiler/model/decoder.h"

namespace shardc {

static auto Qwen2Block(const ModelSizes& m) -> ParameterSpecs {
  using enum ParameterKind;
  const int64_t q_width = m.heads * m.head_dim;
  const int64_t kv_width = m.kv_heads * m.head_dim;
  ParameterSpecs specs{NormSpec("input_layernorm", m.hidden)};
  for (const auto& [projection, width] :
       {std::pair<std::string_view, int64_t>{"q_proj", q_width}, {"k_proj", kv_width}, {"v_proj", kv_width}}) {
    specs.push_back(ProjectionSpec("self_attn", projection, AttentionIn, width, m.hidden));
    specs.push_back(BiasSpec("self_attn", projection, width, m.hidden));
  }
  specs.push_back(ProjectionSpec("self_attn", "o_proj", AttentionOut, m.hidden, q_width));
  specs.push_back(NormSpec("post_attention_layernorm", m.hidden));
  const ParameterSpecs swiglu = SwigluSpecs(m);
  specs.insert(specs.end(), swiglu.begin(), swiglu.end());
  return specs;
}

static auto Qwen2Attention(const BlockBuilder& block, ValueId x) -> ValueId {
  ForwardBuilder& f = block.f;
  const int64_t head_dim = block.m.head_dim;
  const ValueId q = f.Rope(block.LinearWithBias(x, "self_attn.q_proj"), head_dim);
  const ValueId k = f.Rope(block.LinearWithBias(x, "self_attn.k_proj"), head_dim);
  const ValueId v = block.LinearWithBias(x, "self_attn.v_proj");
  return f.Attention(q, k, v, head_dim);
}

static auto Qwen2Forward(ForwardBuilder& f, const ModelSizes& m) -> ModelOutput {
  return DecoderForward(f, m, Qwen2Attention);
}

const ModelFamily Qwen2Family{.outside = DecoderSpecs, .block = Qwen2Block, .forward = Qwen2Forward};

}  // namespace shardc
