// docs/recipe.md and the help of single keys, from the key and value tables.

#include "compiler/recipe/reference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "compiler/recipe/key_rows.h"

namespace shardc {

/// "1 to 65536", "\"none\" or \"full\"", or nothing to add to the type.
static auto AcceptedText(const RecipeKeyRow& row) -> std::string {
  if (const auto range = RangeOf(row.path())) {
    return fmt::format("{} to {}", range->low_text, range->high_text);
  }
  std::vector<std::string> words;
  for (const Choice& choice : ChoicesOf(row.path())) {
    if (choice.accepted) {
      words.push_back(fmt::format("\"{}\"", choice.word));
    }
  }
  return fmt::format("{}", fmt::join(words, " or "));
}

static auto DefaultText(const RecipeKeyRow& row) -> std::string {
  return row.required ? "required" : row.default_text.empty() ? "unset" : row.default_text;
}

static auto TableTitle(const RecipeSectionRow& table) -> std::string {
  return table.list.empty() ? fmt::format("[{}]", table.section) : fmt::format("[[{}.{}]]", table.section, table.list);
}

/// Docs begin in lower case, as they follow a name elsewhere.
static auto Sentence(std::string text) -> std::string {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') {
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  }
  return text + ".";
}

/// Bars would end a cell.
static auto Cell(std::string text) -> std::string {
  for (size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.insert(at, 1, '\\');
  }
  return text;
}

auto RecipeReference() -> std::string {
  std::string text =
      "# Recipe keys\n\n"
      "Made by `shardc docs --recipe` from `schemas/recipe_keys.def` and `schemas/recipe_values.def`; a test checks "
      "that it is\n"
      "current. `shardc help KEY` prints one key, `shardc plan --emit=recipe RECIPE` a recipe with every default "
      "written out.\n"
      "\n"
      "The order of sections is free. Unknown keys are errors. Paths are relative to the recipe's folder. A key that "
      "takes a\n"
      "number accepts a whole one too. [expressions.md](expressions.md) describes expressions. `--set "
      "section.key=value` on the\n"
      "command line sets a key to another value than the recipe does.\n";
  for (const RecipeSectionRow& table : RecipeSectionRows()) {
    text += fmt::format("\n## {}\n\n{}\n\n| Key | Takes | Default | Meaning |\n|---|---|---|---|\n", TableTitle(table),
                        Sentence(table.doc));
    for (const RecipeKeyRow& row : RecipeKeyRows()) {
      if (row.section != table.section || row.list != table.list) {
        continue;
      }
      const std::string accepted = AcceptedText(row);
      const std::string fallback = DefaultText(row);
      const bool is_word = row.required || row.default_text.empty();
      text += fmt::format("| `{}` | {}{} | {} | {} |\n", row.name, DescribeType(row.type),
                          accepted.empty() ? "" : ": " + Cell(accepted),
                          is_word ? fallback : fmt::format("`{}`", Cell(fallback)), Cell(row.doc));
    }
  }
  return text;
}

auto DescribeKey(std::string_view path) -> std::string {
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.path() == path) {
      const std::string accepted = AcceptedText(row);
      return fmt::format("{}: {}\n  takes {}{}\n  default: {}\n", row.path(), row.doc, DescribeType(row.type),
                         accepted.empty() ? "" : ": " + accepted, DefaultText(row));
    }
  }
  return "";
}

}  // namespace shardc
