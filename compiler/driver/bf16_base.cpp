#include "compiler/driver/bf16_base.h"

#include <algorithm>

#include "compiler/base/units.h"
#include "compiler/check/check_recipe.h"
#include "compiler/cost/state_shares.h"
#include "compiler/passes/pipeline.h"

namespace shardc {

/// Returns the plan of the recipe without the words that ask for weights of few bits.
static auto PlanOf(const std::string& path, const std::string& text, const std::vector<std::string>& overrides)
    -> ErrorOr<Plan> {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const Recipe recipe = ReadSoundParts(path, text, overrides, sources, diagnostics, LeftOut::Assume);
  const bool is_sound = std::ranges::all_of(diagnostics.all(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::Warning || diagnostic.kind == DiagnosticKind::FewerBits;
  });
  Diagnostics faults(&sources);
  CheckRecipe(recipe, faults, FileChecks::None);
  if (!is_sound || faults.has_errors()) {
    return Error{ExitCode::RecipeRejected, ""};
  }
  return Compile(recipe, {.stop_after = PassKind::Lifecycle, .verify = false}, faults);
}

auto Bf16BaseText(const std::string& path, const std::string& text, const std::vector<std::string>& overrides)
    -> std::string {
  using Sets = std::vector<std::string>;
  const Sets base{"start.first=scratch", "init.scheme=torchtitan-llama", "precision.compute=bf16",
                  "precision.frozen=bf16"};
  // Keys of the recipe come first: it may have some of these.
  for (const Sets& adapters :
       {Sets{}, Sets{"adapter.kind=lora"}, Sets{"adapter.kind=lora", "adapter.rank=16", "adapter.alpha=32"}}) {
    Sets all = overrides;
    all.insert(all.end(), base.begin(), base.end());
    all.insert(all.end(), adapters.begin(), adapters.end());
    const auto plan = PlanOf(path, text, all);
    const StateShares shares = plan ? StateSharesOf(*plan) : StateShares();
    if (shares.frozen.num_elements > 0) {
      const int64_t ranks = plan->mesh.num_ranks();
      return fmt::format(
          "a base in bf16 takes {} of {}, and what is trained beside it {}", FormatMemory(shares.frozen.state),
          ranks == 1 ? "the one rank" : fmt::format("each of {} ranks", ranks), FormatMemory(shares.trained.state));
    }
  }
  return "";
}

}  // namespace shardc
