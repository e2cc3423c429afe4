// The texts of [shard] that say which parameters form a unit: the preset of `units`, and the names of [[shard.unit]].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/units.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

struct UnitPreset {
  enum class Kind : uint8_t { Block, Torchtitan, Blocks, Size };
  Kind kind = Kind::Block;
  /// Of Kind::Blocks: consecutive blocks a unit.
  int64_t num_blocks = 1;
  /// Of Kind::Size: the most that the parameters of a unit take in the compute type.
  Bytes most;
};

/// "block", "torchtitan", "blocks:K", "size:N MiB" (or KiB, GiB; the space may be left out), with whole K and N.
/// Nothing if the text is none of them.
auto ParseUnitPreset(std::string_view text) -> std::optional<UnitPreset>;
/// All of them, for messages.
constexpr std::string_view UnitPresetForms =
    "\"block\", \"torchtitan\", \"blocks:K\" and \"size:N MiB\", with K from 1 to 65536 and N from 1 to 1048576";

/// The name of the unit that the table of this index makes: its `name`, or unit0, unit1, ...
auto UnitNameOf(const ShardSection& shard, size_t index) -> std::string;
/// Letters, digits, `.`, `_` and `-`, 64 at most: globs are matched with a name, and plans print it.
auto IsUnitName(std::string_view name) -> bool;

}  // namespace shardc
