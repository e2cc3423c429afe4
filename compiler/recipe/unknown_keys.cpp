#include "compiler/recipe/unknown_keys.h"

#include <set>

#include "compiler/recipe/key_rows.h"

namespace shardc {

/// The path of the key anywhere that is spelled nearly like `word`; empty if none.
static auto ClosestPath(const std::string& word) -> std::string {
  std::vector<std::string_view> names;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    names.push_back(row.name);
  }
  const std::string closest = ClosestWord(word, names);
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (!closest.empty() && row.name == closest) {
      return row.path();
    }
  }
  return "";
}

auto ReportUnknownKey(const TomlEntry& entry, const std::string& where, const std::vector<std::string_view>& siblings,
                      Diagnostics& diagnostics) -> std::string {
  std::set<std::string> homes;
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.name == entry.key) {
      homes.insert(row.list.empty() ? fmt::format("[{}]", row.section)
                                    : fmt::format("[[{}.{}]]", row.section, row.list));
    }
  }
  const std::string elsewhere = homes.empty() ? "" : fmt::format("; it exists in {}", fmt::join(homes, " and "));
  auto builder = diagnostics.Build(entry.key_at, DiagnosticKind::UnknownKey, entry.key, where, elsewhere);
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
  return closest;
}

auto ReportUnknownAtTop(const TomlEntry& entry, Diagnostics& diagnostics) -> std::string {
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
  auto builder = diagnostics.Build(entry.key_at, DiagnosticKind::UnknownSection, entry.key);
  std::string closest = ClosestWord(entry.key, sections);
  builder.Help(closest.empty() ? fmt::format("sections: {}", fmt::join(sections, ", "))
                               : fmt::format("did you mean [{}]?", closest));
  builder.Emit();
  return closest;
}

}  // namespace shardc
