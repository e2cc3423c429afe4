// Keys that not every recipe has: a key of [optimizer] may belong to one optimizer, a key of [model] to some families.
// The rows are those of schemas/optimizers.def and schemas/families.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/keys/sections.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

struct OwnedKey {
  std::string_view section;
  std::string_view key;
  /// Of the optimizer or the family that has the key.
  std::string_view word;
};
/// A row for each key and owner. A key without a row belongs to all.
auto OwnedKeys() -> const std::vector<OwnedKey>&;

/// The words of those that have `section.key`; none for a key without a row.
auto OwnersOf(std::string_view section, std::string_view key, std::span<const OwnedKey> rows = OwnedKeys())
    -> std::vector<std::string_view>;

/// Is `section.key` a key that the recipe's optimizer or family lacks? One that there is not lacks none.
auto IsLacked(const Recipe& recipe, std::string_view section, std::string_view key,
              std::span<const OwnedKey> rows = OwnedKeys()) -> bool;

/// Do losses that are spikes do something, and may an update be left out?
auto JudgesSpikes(const Recipe& recipe) -> bool;
auto SkipsUpdates(const Recipe& recipe) -> bool;
/// Returns true if a rule or the scheme of [init] reads `init_std`, or has a fault, so that it may have meant to.
auto UsesStd(const Recipe& recipe) -> bool;
/// Returns true if the default of `section.key` would do nothing if it was written beside the recipe's other keys.
auto IsIdle(const Recipe& recipe, std::string_view section, std::string_view key) -> bool;
/// Of a key that is not set: does the recipe have its default?
auto TakesDefault(const Recipe& recipe, const KeyInfo& key) -> bool;

/// `"llama"`, `"llama" and "qwen3"`.
auto QuotedWords(std::span<const std::string_view> words) -> std::string;

/// Puts the family's own defaults where the recipe sets no value.
auto TakeFamilyDefaults(Recipe& recipe) -> void;
/// Puts the depths of prefetch and of the ring of gradients that pay on the device where the recipe sets none; of the
/// ring, 0 stands for no ring.
auto TakeDeviceDefaults(Recipe& recipe) -> void;

}  // namespace shardc
