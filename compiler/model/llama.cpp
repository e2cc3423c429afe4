// Llama: pre-norm blocks of grouped-query attention with rotary positions and a SwiGLU feed-forward layer.
//
// Source: Touvron et al. 2023, "LLaMA"; names and layouts as huggingface/transformers models/llama.
#include "compiler/model/decoder.h"

namespace shardc {

const ModelFamily LlamaFamily{.outside = DecoderSpecs, .block = BlockWith<NoSpecs>, .forward = RotaryForward<NoOps>};

}  // namespace shardc
