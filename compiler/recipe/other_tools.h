// What keys and features of other trainers are here: the rows of schemas/other_tools.def.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace shardc {

struct KeyElsewhere {
  std::string_view section;
  std::string_view key;
  std::string_view answer;
};

struct Hint {
  std::string_view word;
  std::string_view answer;
};

auto TorchtitanKeys() -> std::span<const KeyElsewhere>;
/// Sections of torchtitan that recipes lack; `word` is the section.
auto TorchtitanSections() -> std::span<const Hint>;
auto Hints() -> std::span<const Hint>;
/// Keys that people look for in a section of ours.
auto HintsInSections() -> std::span<const KeyElsewhere>;
/// Parts of parameters' names elsewhere, and what they are called here.
auto NamesElsewhere() -> std::span<const Hint>;

/// Returns a word in small letters, without `-`, `_` and blanks: "zero3" of "ZeRO-3".
auto FoldedWord(std::string_view word) -> std::string;
/// What to say of a key that [section] does not have; empty if no row knows it. torchtitan's key of this section comes
/// first, then a hint of this section, then a hint, then, in a section of ours
/// or of torchtitan's, its key of another section.
auto HintOfKey(std::string_view section, std::string_view key) -> std::string_view;
/// Returns what a row says of a word, in whatever section; an empty text if no row has it.
auto HintOfWord(std::string_view word) -> std::string_view;
/// Returns true for a word by which a recipe asks for weights of 4 or 8 bits.
auto AsksForFewerBits(std::string_view word) -> bool;
/// The keys that an answer tells to write, as "batch.global".
auto KeysToWrite(std::string_view answer) -> std::vector<std::string>;
/// What to say of a section that recipes do not have; empty if no row knows it.
auto HintOfSection(std::string_view section) -> std::string_view;

}  // namespace shardc
