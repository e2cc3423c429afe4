// Reads what is sound of a text with syntax faults, so that they do not hide the faults of other lines.
#pragma once

#include <optional>

#include "compiler/diag/diagnostics.h"
#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// After so many faults a text is given up.
constexpr int MostTomlFaults = 100;

/// Parses a text that passed CheckText, and reports its faults in our words: toml-syntax, and out-of-range for a number
/// that has no 64 bits. After a fault the text is parsed again without the statement that has it: its key has a node of
/// kind Broken then. Nothing if there are more than MostTomlFaults.
auto ParseSoundToml(const SourceSet& sources, int16_t source, Diagnostics& diagnostics) -> std::optional<TomlNode>;

/// If `key`, of the root table, stands for a header that is broken or stands twice: the section that was meant, or "".
/// The keys after it belong to that section.
auto SectionOfBrokenHeader(std::string_view key) -> std::optional<std::string_view>;

}  // namespace shardc
