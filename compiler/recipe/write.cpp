// Prints the effective recipe: `key = value  # default | recipe.toml:12 | --set`. Keys that are unset, with a meaning
// of their own, become comments, and so do assumed keys and defaults without effect.

#include "compiler/recipe/write.h"

#include <filesystem>

#include "compiler/base/printable.h"
#include "compiler/keys/sections.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

namespace {

class RecipePrinter {
 public:
  explicit RecipePrinter(const Recipe& recipe)
      : recipe_(recipe), file_(PrintableLine(std::filesystem::path(recipe.path).filename().string())) {}

  auto Print() -> std::string {
    ForEachSection(recipe_, [&](std::string_view name, std::string_view, const auto& section) {
      text_ += fmt::format("{}[{}]\n", text_.empty() ? "" : "\n", name);
      PrintKeys(section);
      ForEachList(section, [&](std::string_view list, std::string_view, const auto& items) {
        for (const auto& item : items) {
          text_ += fmt::format("\n[[{}.{}]]\n", name, list);
          PrintKeys(item);
        }
      });
    });
    return text_;
  }

 private:
  template <class Table>
  auto PrintKeys(const Table& table) -> void {
    ForEachKey(table, [&](const KeyInfo& key, const auto& leaf) {
      if (recipe_.IsAssumed(leaf.at)) {
        text_ += fmt::format("# {} = {}  # assumed\n", key.name, WriteToml(leaf.value));
      } else if (leaf.is_set || (TakesDefault(recipe_, key) && !IsIdle(recipe_, key.section, key.name))) {
        text_ += fmt::format("{} = {}  # {}\n", key.name, WriteToml(leaf.value), From(leaf.at, leaf.is_set));
      } else if (IsIdle(recipe_, key.section, key.name)) {
        text_ += fmt::format("# {} = {}  # default, without effect here\n", key.name, WriteToml(leaf.value));
      } else if (!IsLacked(recipe_, key.section, key.name)) {
        text_ += fmt::format("# {}: unset; {}\n", key.name, key.doc);
      }
    });
  }

  auto From(const SourceRange& at, bool is_set) const -> std::string {
    if (!is_set) {
      return "default";
    }
    if (const StandIn* text = recipe_.StandInAt(at)) {
      return text->name;
    }
    return at.source == 0 ? fmt::format("{}:{}", file_, at.line) : "--set";
  }

  const Recipe& recipe_;
  std::string file_;
  std::string text_;
};

}  // namespace

auto PrintRecipe(const Recipe& recipe) -> std::string { return RecipePrinter(recipe).Print(); }

}  // namespace shardc
