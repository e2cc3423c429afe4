// The two sizes of [model] that follow from others.

#include "compiler/recipe/model_sizes.h"

namespace shardc {

auto ResolveModel(const Recipe& recipe) -> ModelSizes {
  const ModelSection& model = recipe.model;
  CHECK(*model.heads > 0, "heads {}", *model.heads);
  ModelSizes sizes;
  sizes.family = model.family->text();
#define MODEL_KEY(name, ...) sizes.name = *model.name;
#include "schemas/model_keys.def"
  sizes.kv_heads = model.kv_heads.is_set ? *model.kv_heads : *model.heads;
  sizes.head_dim = model.head_dim.is_set ? *model.head_dim : *model.hidden / *model.heads;
  for (const LossHead& head : recipe.loss.head) {
    sizes.loss_heads.push_back({.name = *head.name, .vocab = *head.vocab});
  }
  return sizes;
}

}  // namespace shardc
