#include "compiler/keys/model_sizes.h"

#include "compiler/base/check.h"

namespace shardc {

auto ResolveModel(const PlanKeys& keys) -> ModelSizes {
  const auto& model = keys.model;
  const int64_t heads = model.heads.value_or(0);
  CHECK(heads > 0, "heads {}", heads);
  ModelSizes sizes;
  sizes.family = model.family->text();
#define REQUIRED key_type::NoDefault()
#define UNSET key_type::NoDefault()
#define MODEL_KEY(name, Type, default_, doc) \
  sizes.name = model.name.value_or(key_type::DefaultOf<key_type::Type>(default_));
#include "schemas/model_keys.def"
#undef REQUIRED
#undef UNSET
  sizes.kv_heads = model.kv_heads.value_or(heads);
  sizes.head_dim = model.head_dim.value_or(sizes.hidden / heads);
  for (const auto& head : keys.loss.head) {
    sizes.loss_heads.push_back({.name = head.name.value_or(""), .vocab = head.vocab.value_or(0)});
  }
  sizes.adapter = ResolveAdapters(keys);
  return sizes;
}

}  // namespace shardc
