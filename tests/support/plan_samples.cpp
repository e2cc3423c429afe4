#include "tests/support/plan_samples.h"
#include "tests/support/compile_recipe.h"

#include <algorithm>

namespace shardc {

auto SampleRecipe() -> std::string_view {
  return R"toml(
[model]
family = "llama"
layers = 2
hidden = 16
heads = 4
kv_heads = 2
ffn = 24
vocab = 64
seq = 8
[mesh]
dp = 2
[[init.rule]]
match = "*proj.weight"
value = "normal(0, 0.02)"
[[init.rule]]
match = "*norm.weight"
value = 1
[[init.rule]]
match = "*tokens.weight"
value = "normal(0, 1)"
[[init.rule]]
match = "lm_head.weight"
value = "normal(0, 1 / sqrt(hidden))"
[optimizer]
lr = "0.001 * (1 - step / steps)"
[data]
tokens = ["a.bin"]
eval_tokens = 100
[batch]
global = 12
micro = 2
[train]
steps = 10
eval_every = 5
[checkpoint]
every = 4
)toml";
}

auto CompileSample(const std::vector<std::string>& sets, std::optional<PassKind> stop_after) -> Plan {
  return CompileRecipe("sample.toml", std::string(SampleRecipe()), sets, stop_after).plan;
}

auto LineWith(std::string_view text, const std::vector<std::string>& parts) -> std::string {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (std::all_of(parts.begin(), parts.end(),
                    [&](const std::string& part) { return line.find(part) != std::string_view::npos; })) {
      return std::string(line);
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  CHECK(false, "no line has all of: {}", fmt::join(parts, " | "));
}

}  // namespace shardc
