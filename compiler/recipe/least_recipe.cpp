#include "compiler/recipe/least_recipe.h"

namespace shardc {

auto LeastRecipe() -> std::string_view {
  return R"([model]
family = "llama"
layers = 4
hidden = 128
heads = 4
ffn = 384
vocab = 256
seq = 256

[init]
scheme = "torchtitan-llama"

[optimizer]
lr = 1e-3

[data]
tokens = ["tokens.bin"]

[batch]
global = 8

[train]
steps = 100)";
}

}  // namespace shardc
