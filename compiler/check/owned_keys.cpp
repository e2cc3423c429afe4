// Keys that the recipe's optimizer or family lacks.

#include "compiler/recipe/owned_keys.h"

#include "compiler/check/check_context.h"
#include "compiler/keys/sections.h"

namespace shardc {

auto CheckOwnedKeys(CheckContext& context, std::span<const OwnedKey> rows) -> void {
  const Recipe& recipe = context.recipe();
  const auto check = [&](const auto& section, std::string_view chooser, const std::string& choice) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (leaf.is_set && IsLacked(recipe, key.section, key.name, rows)) {
        context.diags().Report(leaf.at, DiagnosticKind::LackedKey, key.name, chooser, choice,
                               QuotedWords(OwnersOf(key.section, key.name, rows)));
      }
    });
  };
  check(recipe.model, "family", recipe.model.family->text());
  check(recipe.optimizer, "optimizer", recipe.optimizer.name->text());
}

}  // namespace shardc
