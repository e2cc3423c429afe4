#include "compiler/checkpoint/stage_changes.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/plan/header.h"

namespace shardc {

namespace {

struct Consequence {
  /// The beginning of the keys that have it.
  std::string_view key;
  std::string_view text;
};

/// The first row that a key begins with counts; a key without a row changes nothing that the checkpoint holds.
constexpr std::array Consequences{
    Consequence{"model.seq", "longer positions than before were not trained"},
    Consequence{"model.rope", "positions turn otherwise than those that the weights were trained with"},
    Consequence{"model.norm_eps", "the weights were trained with the other one"},
    Consequence{"loss.head", "heads that the checkpoint lacks begin by their init rules"},
    Consequence{"loss.", "the loss is another one; compare no losses across the stages"},
    Consequence{"optimizer.frozen",
                "what is trained now and was frozen begins with moments of 0 and a count of its own; moments of what "
                "is frozen now are left"},
    Consequence{"optimizer.name", "moments of another optimizer are not taken"},
    Consequence{"optimizer.lr", "the rate is that of this stage from its first step on"},
    Consequence{"optimizer.group", "rates and decays of groups are those of this stage from its first step on"},
    Consequence{"optimizer.", "the moments that are kept were made with the other value"},
    Consequence{"data.source.weight", "shares are those of this stage"},
    Consequence{"data.source", "a source that was added begins at its first sample"},
    Consequence{"data.eval", "compare no evaluations across the stages"},
    Consequence{"data.", "the samples are others"},
    Consequence{"batch.global", "an update is the mean over as many tokens more or fewer; rates are not scaled"},
    Consequence{"batch.", "sums are taken in another order"},
    Consequence{"adapter.", "adapters that are taken were trained with the other value"},
    Consequence{"precision.master", "parameters are rounded or widened as they are loaded"},
    Consequence{"precision.", "results are rounded otherwise"},
    Consequence{"mesh.", "the checkpoint is read by any mesh; sums are taken in another order"},
    Consequence{"train.steps", "of this stage alone"},
};

/// Returns true for keys of which each stage has its own, or that only a start from rules reads.
auto IsOfEachStage(std::string_view key) -> bool {
  return key.starts_with("start.") || key.starts_with("init.") || key.starts_with("run.") ||
         key.starts_with("checkpoint.") || key == "model.preset";
}

}  // namespace

auto StageChanges(const Manifest& manifest, const Plan& plan) -> std::vector<std::string> {
  if (plan.recipe.empty() || manifest.recipe.empty()) {
    return {};
  }
  std::vector<std::string> changes;
  for (const KeyDifference& change : DifferencesOf(ReadKeys(manifest.recipe).keys, KeysOf(plan))) {
    if (IsOfEachStage(change.key)) {
      continue;
    }
    const auto row = std::ranges::find_if(
        Consequences, [&](const Consequence& consequence) { return change.key.starts_with(consequence.key); });
    changes.push_back(row == Consequences.end() ? ToText(change) : fmt::format("{}: {}", ToText(change), row->text));
  }
  return changes;
}

auto ReadStageChanges(const Plan& plan) -> std::vector<std::string> {
  if (!plan.seed.continues()) {
    return {};
  }
  const auto directory = OpenDirectory(PosixFs(), plan.seed.path);
  const auto contents = directory ? ReadSeedContents(*directory) : directory.error();
  return contents && contents->digest == plan.seed.manifest ? StageChanges(contents->manifest, plan)
                                                            : std::vector<std::string>();
}

}  // namespace shardc
