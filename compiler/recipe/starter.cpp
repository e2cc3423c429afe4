// The recipe that `shardc new` writes.

#include <fmt/format.h>

#include "compiler/keys/toml_value.h"
#include "compiler/recipe/reference.h"

namespace shardc {

auto PresetLines(std::string_view preset) -> std::string {
  return fmt::format(
      R"toml(# The sizes and the init scheme of a model that exists; `shardc presets` lists them. Set any key of [model] beside it.
preset = "{}"
# seq = 4096
)toml",
      preset);
}

/// Returns the lines of [precision]. What adapters are beside is kept as its files have it, and computed in that type.
static auto PrecisionLines(const StarterModel& model) -> std::string {
  constexpr std::string_view OnCompute =
      "# \"bf16\" takes half the memory of activations and gathered parameters, and half the communication.\n";
  if (!model.adapter_rank || !model.is_bf16) {
    return fmt::format("{}compute = \"fp32\"\n", OnCompute);
  }
  return fmt::format(
      "{}compute = \"bf16\"\n# The frozen parameters as the model's files have them.\nfrozen = \"bf16\"\n", OnCompute);
}

/// Returns the section [adapter]; empty if the whole model is trained.
static auto AdapterLines(const StarterModel& model) -> std::string {
  if (!model.adapter_rank) {
    return "";
  }
  // With a fused module `match` has to name all of its projections.
  const std::string choice =
      model.fused.empty() ? "# match = [\"*.q_proj.weight\", \"*.v_proj.weight\"]\n"
                          : fmt::format(
                                "# Projections that are one module in the model's files share one A, as in peft.\n"
                                "fused = {}\n",
                                WriteToml(model.fused));
  return fmt::format(R"toml(
[adapter]
# The model stays as it is, and two narrow matrices beside each projection are trained. `shardc export --merge` adds them
# to it, `--adapter` writes them as peft reads them.
kind = "lora"
rank = {}
# The product of the two is scaled by alpha / rank.
alpha = {}
{})toml",
                     *model.adapter_rank, 2 * *model.adapter_rank, choice);
}

/// Returns the lines of the learning rate.
static auto RateLines(const StarterModel& model) -> std::string_view {
  constexpr std::string_view Whole =
      R"toml(# A number, or an expression over step (0 in the first) and steps. It rises over a tenth of the steps, and then falls.
lr = "let rise = floor(steps / 10) in 3e-4 * warmup(rise) * cosine(rise, 0.1)"
weight_decay = 0.1
)toml";
  constexpr std::string_view OfAdapters =
      R"toml(# A number, or an expression over step (0 in the first) and steps. It rises over a tenth of the steps, and then falls.
# Adapters of 7B and 13B models are trained with 2e-4, those of 33B and 65B with 1e-4 (Dettmers et al. 2023, "QLoRA").
lr = "let rise = floor(steps / 10) in 2e-4 * warmup(rise) * cosine(rise, 0.1)"
weight_decay = 0.0
)toml";
  return model.adapter_rank ? OfAdapters : Whole;
}

auto StarterRecipe(const StarterModel& model) -> std::string {
  return fmt::format(R"toml(#:schema recipe.schema.json
# Editors complete and check this file by the schema beside it: `shardc schema > recipe.schema.json` makes it.
# What the run will cost: shardc plan --explain FILE. To train: shardc run FILE. Every key: shardc help KEY.

[model]
{}
[mesh]
# Ranks that share one copy of the model's state (FSDP). tp = 2 would cut each matrix over two ranks besides.
dp = 1

[precision]
{}
[recompute]
# "full" keeps each block's input and computes the rest again in backward: less memory, more work.
policy = "none"

[optimizer]
{}
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
{}{})toml",
                     model.lines, PrecisionLines(model), RateLines(model),
                     // A model that is there already knows the ids of its own tokenizer alone.
                     model.start.empty()
                         ? "`shardc tokenize --bytes TEXT -o tokens.bin` makes one of bytes."
                         : "tools/tokenize_text.py makes them by the model's own tokenizer, and\n# `format = "
                           "\"megatron\"` reads them.",
                     model.start, AdapterLines(model));
}

}  // namespace shardc
