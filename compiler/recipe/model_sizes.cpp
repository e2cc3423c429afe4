// The two sizes of [model] that follow from others.

#include "compiler/recipe/model_sizes.h"

namespace shardc {

auto ResolveModel(const Recipe& recipe) -> ModelSizes {
  const ModelSection& model = recipe.model;
  CHECK(*model.heads > 0, "heads {}", *model.heads);
  return {.family = *model.family,
          .layers = *model.layers,
          .hidden = *model.hidden,
          .heads = *model.heads,
          .kv_heads = model.kv_heads.is_set ? *model.kv_heads : *model.heads,
          .head_dim = model.head_dim.is_set ? *model.head_dim : *model.hidden / *model.heads,
          .ffn = *model.ffn,
          .vocab = *model.vocab,
          .seq = *model.seq,
          .rope_theta = *model.rope_theta,
          .norm_eps = *model.norm_eps,
          .tied = *model.tied};
}

}  // namespace shardc
