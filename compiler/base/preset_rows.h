// The rows of schemas/presets.def: models that a recipe may name, and what check and plan take for keys beside them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/recipe_words.h"

namespace shardc {

struct PresetRow {
  ModelPreset preset;
  std::string_view name;
  /// Where the sizes are from.
  std::string_view source;
  /// Of the longest sequence that the published model takes.
  int64_t longest_seq = 0;
  /// The keys that it gives, as lines of a recipe.
  std::string_view lines;
};

struct PresetKey {
  /// "model.layers".
  std::string path;
  /// In TOML, as compiler/recipe/write.h writes it.
  std::string value;
};

/// In the order of schemas/presets.def.
auto PresetRows() -> std::span<const PresetRow>;
/// Null if no preset has this name.
auto PresetNamed(std::string_view name) -> const PresetRow*;
/// What the lines of a preset set.
auto KeysOf(const PresetRow& row) -> std::vector<PresetKey>;
/// The value of `path` in a preset; empty if the preset does not give it.
auto ValueIn(const PresetRow& row, std::string_view path) -> std::string;

/// A line that check and plan take for a key that a recipe with a preset leaves out.
struct AssumedRow {
  std::string_view section;
  std::string_view key;
  /// In TOML.
  std::string_view value;
  std::string_view why;
};
auto AssumedRows() -> std::span<const AssumedRow>;

}  // namespace shardc
