// The sizes of the model with its defaults worked out, for the model families and the passes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/keys/adapters.h"
#include "compiler/keys/plan_keys.h"

namespace shardc {

/// The name of the model's own head among those of [[loss.head]].
inline constexpr std::string_view OwnHead = "tokens";

/// A further head on the last hidden state, with a loss of its own.
struct LossHeadSize {
  std::string name;
  int64_t vocab = 0;
};

struct ModelSizes {
  std::string family;
  // A member for each key of a model. One that the family lacks holds its default.
#define MODEL_KEY(name, Type, ...) key_type::Type name{};
#include "schemas/model_keys.def"
  std::vector<LossHeadSize> loss_heads;
  AdapterSizes adapter;
};

/// Returns the sizes: kv_heads defaults to heads, head_dim to hidden / heads, and every other key to the default of its
/// row. Requires: the keys have the family, and heads > 0.
auto ResolveModel(const PlanKeys& keys) -> ModelSizes;

}  // namespace shardc
