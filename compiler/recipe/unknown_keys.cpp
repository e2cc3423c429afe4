#include "compiler/recipe/unknown_keys.h"

#include <algorithm>
#include <set>

#include "compiler/base/mapped.h"
#include "compiler/base/text/joined.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/other_tools.h"

namespace shardc {

/// The path of the key anywhere that `word` is a slip of; empty if none. What is less alike is another word.
static auto ClosestPath(const std::string& word) -> std::string {
  const auto names = Mapped<std::string_view>(RecipeKeyRows(), &RecipeKeyRow::name);
  const std::string closest = ClosestWord(word, names);
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (IsSlipOf(word, closest) && row.name == closest) {
      return row.path();
    }
  }
  return "";
}

/// `[model]` to `model`, `[[init.rule]]` to `init`.
static auto SectionOf(std::string_view where) -> std::string_view {
  where.remove_prefix(std::min(where.find_first_not_of('['), where.size()));
  return where.substr(0, where.find_first_of(".]"));
}

/// Is the value one of the words that the key takes?
static auto TakesWord(const RecipeKeyRow& row, const TomlNode& value) -> bool {
  return value.kind == TomlNode::Kind::Text &&
         std::ranges::any_of(ChoicesOf(row.path()), [&](const Choice& choice) { return choice.word == value.text; });
}

/// The tables that have a key of this name; of several, those alone whose key takes the value as one of its words.
static auto TablesWith(const TomlEntry& entry) -> std::set<std::string> {
  std::set<std::string> tables;
  std::set<std::string> by_word;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.name == entry.key) {
      const std::string table =
          row.list.empty() ? fmt::format("[{}]", row.section) : fmt::format("[[{}.{}]]", row.section, row.list);
      tables.insert(table);
      if (TakesWord(row, entry.value)) {
        by_word.insert(table);
      }
    }
  }
  return by_word.empty() ? tables : by_word;
}

auto ReportUnknownKey(const TomlEntry& entry, const std::string& where, const std::vector<std::string_view>& siblings,
                      Diagnostics& diagnostics) -> Meant {
  const std::string_view section = SectionOf(where);
  const std::set<std::string> homes = TablesWith(entry);
  // A key that recipes have elsewhere is meant as that one, unless torchtitan has it in this very section.
  const bool is_torchtitans = std::ranges::any_of(
      TorchtitanKeys(), [&](const KeyElsewhere& row) { return row.section == section && row.key == entry.key; });
  const std::string_view hint = homes.empty() || is_torchtitans ? HintOfKey(section, entry.key) : "";
  const std::string elsewhere =
      homes.empty() || !hint.empty() ? "" : fmt::format("; it exists in {}", JoinedByAnd(homes));
  auto builder = AsksForFewerBits(entry.key)
                     ? diagnostics.Build(entry.key_at, DiagnosticKind::FewerBits, entry.key)
                     : diagnostics.Build(entry.key_at, DiagnosticKind::UnknownKey, entry.key, where, elsewhere);
  if (!hint.empty()) {
    builder.Help(std::string(hint)).Emit();
    return {.name = "", .keys = KeysToWrite(hint)};
  }
  std::string closest = homes.empty() ? ClosestWord(entry.key, siblings) : "";
  if (!closest.empty()) {
    builder.Help(fmt::format("did you mean `{}`?", closest));
  } else if (homes.empty()) {
    if (const std::string path = ClosestPath(entry.key); !path.empty()) {
      builder.Help(fmt::format("did you mean `{}`?", path));
    } else if (!siblings.empty()) {
      builder.Help(fmt::format("known here: {}", fmt::join(siblings, ", ")));
    }
  }
  builder.Emit();
  return {.name = std::move(closest), .keys = {}};
}

/// One note for each key of a table that another tool has. Returns what to write.
static auto AddNotes(const TomlEntry& entry, Diagnostics::Builder& builder) -> std::vector<std::string> {
  std::vector<std::string> keys;
  for (const TomlEntry& inner : entry.value.entries) {
    if (const std::string_view answer = HintOfKey(entry.key, inner.key); !answer.empty()) {
      builder.Note(inner.key_at, fmt::format("`{}`: {}", inner.key, answer));
      const std::vector<std::string> more = KeysToWrite(answer);
      keys.insert(keys.end(), more.begin(), more.end());
    }
  }
  return keys;
}

auto ReportUnknownAtTop(const TomlEntry& entry, Diagnostics& diagnostics) -> Meant {
  const bool is_table = entry.value.kind == TomlNode::Kind::Table || entry.value.kind == TomlNode::Kind::Array;
  if (!is_table) {
    return ReportUnknownKey(entry, "the top level", {}, diagnostics);
  }
  std::vector<std::string_view> sections;
  for (const RecipeSectionRow& row : RecipeSectionRows()) {
    if (row.list.empty()) {
      sections.push_back(row.section);
    }
  }
  auto builder = diagnostics.Build(
      entry.key_at, AsksForFewerBits(entry.key) ? DiagnosticKind::FewerBits : DiagnosticKind::UnknownSection,
      entry.key);
  if (const std::string_view hint = HintOfSection(entry.key); !hint.empty()) {
    std::vector<std::string> keys = AddNotes(entry, builder);
    builder.Help(std::string(hint)).Emit();
    return {.name = "", .keys = std::move(keys)};
  }
  std::string closest = ClosestWord(entry.key, sections);
  builder.Help(closest.empty() ? fmt::format("sections: {}", fmt::join(sections, ", "))
                               : fmt::format("did you mean [{}]?", closest));
  builder.Emit();
  return {.name = std::move(closest), .keys = {}};
}

}  // namespace shardc
