// Rules of [adapter]: what an adapter needs, and keys of other sections that say something else of the same parameters.
// Which projections its globs match is for the passes to judge.
#include "compiler/check/check_context.h"

namespace shardc {

/// Returns true if a key of the section is set.
static auto IsUsed(const AdapterSection& adapter) -> bool {
  return adapter.rank.is_set || adapter.alpha.is_set || adapter.match.is_set || adapter.scaling.is_set ||
         adapter.train_also.is_set || !adapter.override.empty();
}

/// Refuses another type than fp32 for what is trained. Overrides may name units of frozen parameters alone: the passes
/// judge them.
static auto CheckMaster(CheckContext& context) -> void {
  const Located<OneOf<MasterPrecision>>& master = context.recipe().precision.master;
  if (!master.is_set || !context.IsSound(master)) {
    return;
  }
  switch (*master) {
    case MasterPrecision::Fp32: return;
    case MasterPrecision::Bf16:
      context.diags()
          .Build(master.at, DiagnosticKind::AdapterMaster)
          .Help("write precision.frozen = \"bf16\" in its place, which keeps what is frozen in bf16")
          .Emit();
      return;
  }
}

auto CheckAdapter(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  const AdapterSection& adapter = recipe.adapter;
  if (!adapter.kind.is_set) {
    if (IsUsed(adapter)) {
      context.diags().Report(adapter.at, DiagnosticKind::MissingKey, "kind", "[adapter]",
                             "kind = \"lora\" is the one there is");
    }
    return;
  }
  const auto require = [&](const auto& key, std::string_view name, std::string_view example) {
    if (!key.is_set) {
      context.diags().Report(adapter.at, DiagnosticKind::MissingKey, name, "[adapter]", example);
    }
  };
  require(adapter.rank, "rank", "rank = 16 is usual");
  require(adapter.alpha, "alpha", "alpha = 32 is usual: twice the rank");
  if (adapter.match.is_set && adapter.match->empty()) {
    context.diags().Report(adapter.match.at, DiagnosticKind::MissingKey, "match", "[adapter]",
                           "an empty list names no projection; leave it out for all of them");
  }
  if (recipe.optimizer.frozen.is_set && !recipe.optimizer.frozen->empty()) {
    context.diags()
        .Build(recipe.optimizer.frozen.at, DiagnosticKind::AdapterFrozen)
        .Note(adapter.kind.at, "adapters are set here")
        .Emit();
  }
  CheckMaster(context);
  for (const AdapterOverride& rule : adapter.override) {
    if (!rule.rank.is_set && !rule.alpha.is_set) {
      context.diags().Report(rule.at, DiagnosticKind::MissingKey, "rank", "[[adapter.override]]",
                             "an override names rank, alpha or both");
    }
  }
}

}  // namespace shardc
