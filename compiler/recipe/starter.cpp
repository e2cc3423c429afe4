// The recipe that `shardc new` writes.

#include <fmt/format.h>

#include "compiler/recipe/reference.h"

namespace shardc {

auto StarterRecipe(std::string_view preset) -> std::string {
  return StarterRecipe(
      fmt::format(
          R"toml(# The sizes and the init scheme of a model that exists; `shardc presets` lists them. Set any key of [model] beside it.
preset = "{}"
# seq = 4096
)toml",
          preset),
      "");
}

auto StarterRecipe(std::string_view model, std::string_view start) -> std::string {
  return fmt::format(R"toml(#:schema recipe.schema.json
# Editors complete and check this file by the schema beside it: `shardc schema > recipe.schema.json` makes it.
# What the run will cost: shardc plan --explain FILE. To train: shardc run FILE. Every key: shardc help KEY.

[model]
{}
[mesh]
# Ranks that share one copy of the model's state (FSDP). tp = 2 would cut each matrix over two ranks besides.
dp = 1

[precision]
# "bf16" takes half the memory of activations and gathered parameters, and half the communication.
compute = "fp32"

[recompute]
# "full" keeps each block's input and computes the rest again in backward: less memory, more work.
policy = "none"

[optimizer]
# A number, or an expression over step (0 in the first) and steps. It rises over a tenth of the steps, and then falls.
lr = "let rise = floor(steps / 10) in 3e-4 * warmup(rise) * cosine(rise, 0.1)"
weight_decay = 0.1

[data]
# Token files, relative to this file; {}
tokens = ["tokens.bin"]
# Tokens at the end of the stream that are held out for evaluation.
eval_tokens = 0

[batch]
# Sequences per rank and microbatch, and microbatches per step.
micro = 1
accumulate = 1

[train]
steps = 1000
log_every = 10

[checkpoint]
# Steps between saves. The same command continues a run from its newest checkpoint.
every = 500
{})toml",
                     model,
                     // A model that is there already knows the ids of its own tokenizer alone.
                     start.empty() ? "`shardc tokenize --bytes TEXT -o tokens.bin` makes one of bytes."
                                   : "tools/tokenize_text.py makes them by the model's own tokenizer, and\n# `format = "
                                     "\"megatron\"` reads them.",
                     start);
}

}  // namespace shardc
