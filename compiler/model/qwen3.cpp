// Qwen3: as Llama, with a norm over each head of queries and keys before their rotation.
//
// Source: Yang et al. 2025, "Qwen3 Technical Report"; names and layouts as huggingface/transformers models/qwen3.
#include "compiler/model/decoder.h"

namespace shardc {

/// "self_attn.q_norm" of q_proj; empty for v_proj, whose results have no norm.
static auto HeadNormAfter(std::string_view projection) -> std::string_view {
  return projection == "q_proj" ? "self_attn.q_norm" : projection == "k_proj" ? "self_attn.k_norm" : "";
}

static auto HeadNorms(const ModelSizes& m, std::string_view projection, int64_t) -> ParameterSpecs {
  const std::string_view norm = HeadNormAfter(projection);
  return norm.empty() ? ParameterSpecs{} : ParameterSpecs{NormSpec(norm, m.head_dim)};
}

static auto NormHeads(const BlockBuilder& block, ValueId projected, std::string_view projection) -> ValueId {
  const std::string_view norm = HeadNormAfter(projection);
  return norm.empty() ? projected : block.HeadNorm(projected, norm);
}

const ModelFamily Qwen3Family{
    .outside = DecoderSpecs, .block = BlockWith<HeadNorms>, .forward = RotaryForward<NormHeads>};

}  // namespace shardc
