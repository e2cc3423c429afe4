// Qwen2 and Qwen2.5: as Llama, with a bias after the projections to queries, keys and values.
//
// Source: Yang et al. 2024, "Qwen2 Technical Report"; names and layouts as huggingface/transformers models/qwen2.
#include "compiler/model/decoder.h"

namespace shardc {

static auto Biases(const ModelSizes& m, std::string_view projection, int64_t outputs) -> ParameterSpecs {
  return {BiasSpec("self_attn", projection, outputs, m.hidden)};
}

static auto AddBias(const BlockBuilder& block, ValueId projected, std::string_view projection) -> ValueId {
  return block.Bias(projected, fmt::format("self_attn.{}", projection));
}

const ModelFamily Qwen2Family{.outside = DecoderSpecs, .block = BlockWith<Biases>, .forward = RotaryForward<AddBias>};

}  // namespace shardc
