// Presets of models in recipes: which texts of ours stand in for keys that the user's texts do not set, and what is
// said of them. The reader reads these texts as it reads the user's, so that whatever comes after sees ordinary keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/preset_rows.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// A text that stands in, and how places in it are called: "preset llama3-8b".
struct StandInText {
  std::string name;
  /// Empty if there is nothing to stand in.
  std::string lines;
};

/// Returns the help of a message about a preset that does not exist: the nearest name, and where all names are.
auto HelpOnPresets(std::string_view name) -> std::string;

/// Returns the first preset whose name, or whose model's name on the hub, begins as the word does, whatever its letters
/// and dashes: llama3-8b for "Llama-3". Null if none does.
auto PresetLike(std::string_view word) -> const PresetRow*;

/// The lines of the recipe's preset; nothing if the recipe names none, or one that does not exist, which is reported.
auto TextOfPreset(const Recipe& recipe, Diagnostics& diagnostics) -> StandInText;

/// Lines for the keys that check and plan need and that the recipe, which names a preset, leaves out.
auto TextOfAssumed(const Recipe& recipe) -> StandInText;

/// One line for each key that was assumed: "batch.micro = 1 (one sequence per rank and microbatch)".
auto AssumedLines(const Recipe& recipe) -> std::vector<std::string>;

}  // namespace shardc
