// The two sizes of [model] that follow from others.

#include "compiler/recipe/model_sizes.h"

namespace shardc {

auto ResolveModel(const Recipe& recipe) -> ModelSizes {
  const ModelSection& model = recipe.model;
  CHECK(*model.heads > 0, "heads {}", *model.heads);
  std::vector<LossHeadSize> loss_heads;
  for (const LossHead& head : recipe.loss.head) {
    loss_heads.push_back({.name = *head.name, .vocab = *head.vocab});
  }
  return {.family = model.family->text(),
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
          .tied = *model.tied,
          .loss_heads = std::move(loss_heads)};
}

}  // namespace shardc
