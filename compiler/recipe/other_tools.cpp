#include "compiler/recipe/other_tools.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "compiler/recipe/key_rows.h"

namespace shardc {

static constexpr auto KeyRows = std::to_array<KeyElsewhere>({
#define TORCHTITAN(section, key, answer) {section, key, answer},
#include "schemas/other_tools.def"
});

static constexpr auto SectionRows = std::to_array<Hint>({
#define TORCHTITAN_SECTION(section, answer) {section, answer},
#include "schemas/other_tools.def"
});

static constexpr std::string_view OnFewerBits =
    "write [adapter] with kind = \"lora\", and precision.frozen = \"bf16\" for the base";

static constexpr auto HintRows = std::to_array<Hint>({
#define HINT(word, answer) {word, answer},
#define FEWER_BITS(word) {word, OnFewerBits},
#include "schemas/other_tools.def"
});

/// The section is one of ours.
static constexpr auto HintInRows = std::to_array<KeyElsewhere>({
#define HINT_IN(section, word, answer) {section, word, answer},
#include "schemas/other_tools.def"
});

static constexpr auto NameRows = std::to_array<Hint>({
#define NAME_ELSEWHERE(theirs, ours) {theirs, ours},
#include "schemas/other_tools.def"
});

auto TorchtitanKeys() -> std::span<const KeyElsewhere> { return KeyRows; }
auto TorchtitanSections() -> std::span<const Hint> { return SectionRows; }
auto Hints() -> std::span<const Hint> { return HintRows; }
auto HintsInSections() -> std::span<const KeyElsewhere> { return HintInRows; }
auto NamesElsewhere() -> std::span<const Hint> { return NameRows; }

auto FoldedWord(std::string_view word) -> std::string {
  std::string folded;
  for (const unsigned char c : word) {
    if (c != '-' && c != '_' && c != ' ') {
      folded += static_cast<char>(std::tolower(c));
    }
  }
  return folded;
}

static auto AnswerOf(std::span<const Hint> rows, std::string_view word) -> std::string_view {
  const auto row = std::ranges::find(rows, FoldedWord(word), [](const Hint& hint) { return FoldedWord(hint.word); });
  return row == rows.end() ? std::string_view() : row->answer;
}

auto HintOfWord(std::string_view word) -> std::string_view { return AnswerOf(HintRows, word); }

auto AsksForFewerBits(std::string_view word) -> bool { return HintOfWord(word) == OnFewerBits; }

auto HintOfKey(std::string_view section, std::string_view key) -> std::string_view {
  for (const std::span<const KeyElsewhere> rows : {TorchtitanKeys(), HintsInSections()}) {
    const auto own =
        std::ranges::find_if(rows, [&](const KeyElsewhere& row) { return row.section == section && row.key == key; });
    if (own != rows.end()) {
      return own->answer;
    }
  }
  if (const std::string_view answer = HintOfWord(key); !answer.empty()) {
    return answer;
  }
  // In a section of another trainer the same name means something else.
  const bool is_ours = section.empty() || std::ranges::find(RecipeSectionRows(), section, &RecipeSectionRow::section) !=
                                              RecipeSectionRows().end();
  const bool is_torchtitans = std::ranges::find(SectionRows, section, &Hint::word) != SectionRows.end();
  const auto* const other = std::ranges::find(KeyRows, key, &KeyElsewhere::key);
  return other == KeyRows.end() || !(is_ours || is_torchtitans) ? std::string_view() : other->answer;
}

auto KeysToWrite(std::string_view answer) -> std::vector<std::string> {
  constexpr std::string_view Begins = "write ";
  std::vector<std::string> keys;
  if (!answer.starts_with(Begins)) {
    return keys;
  }
  std::string word;
  for (const char c : std::string(answer.substr(Begins.size(), answer.find(';') - Begins.size())) + ' ') {
    if ((c >= 'a' && c <= 'z') || c == '_' || c == '.') {
      word += c;
      continue;
    }
    if (std::ranges::any_of(RecipeKeyRows(), [&](const RecipeKeyRow& row) { return row.path() == word; })) {
      keys.push_back(word);
    }
    word.clear();
  }
  return keys;
}

auto HintOfSection(std::string_view section) -> std::string_view {
  const std::string_view answer = AnswerOf(SectionRows, section);
  return answer.empty() ? AnswerOf(HintRows, section) : answer;
}

}  // namespace shardc
