// The lines of a recipe that is written, section by section in the order of schemas/recipe_keys.def.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/recipe/key_rows.h"

namespace shardc {

class RecipeLines {
 public:
  auto Add(std::string_view section, std::string_view key, std::string_view value, std::string_view comment = "")
      -> void {
    Section(section) += fmt::format("{} = {}{}{}\n", key, value, comment.empty() ? "" : "  # ", comment);
  }
  auto Say(std::string_view section, std::string_view comment) -> void {
    Section(section) += fmt::format("# {}\n", comment);
  }
  auto Text() const -> std::string {
    std::string text;
    for (const RecipeSectionRow& row : RecipeSectionRows()) {
      for (const auto& [name, lines] : sections_) {
        text += row.list.empty() && row.section == name ? fmt::format("\n[{}]\n{}", name, lines) : "";
      }
    }
    return text;
  }

 private:
  auto Section(std::string_view name) -> std::string& {
    const auto found = std::ranges::find(sections_, name, &std::pair<std::string, std::string>::first);
    return found != sections_.end() ? found->second : sections_.emplace_back(name, "").second;
  }

  std::vector<std::pair<std::string, std::string>> sections_;
};

}  // namespace shardc
