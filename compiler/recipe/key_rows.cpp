// Turns the rows of recipe_keys.def and recipe_values.def into vectors, once.

#include "compiler/recipe/key_rows.h"

#include <functional>
#include <map>

#include "compiler/keys/sections.h"
#include "compiler/keys/toml_value.h"
#include "compiler/recipe/owned_keys.h"

namespace shardc {

auto RecipeKeyRow::path() const -> std::string {
  return list.empty() ? section + "." + name : section + "." + list + "." + name;
}

static auto MakeRow(const KeyInfo& key, std::string default_text) -> RecipeKeyRow {
  return {.section = std::string(key.section),
          .list = std::string(key.list),
          .name = std::string(key.name),
          .type = std::string(key.type),
          .required = key.is_required(),
          .default_text = key.has_default() ? std::move(default_text) : "",
          .doc = std::string(key.doc)};
}

/// visit(key, leaf) for every key, with its default: those of a section, and then those of its lists.
template <class F>
static auto ForEachLeaf(const F& visit) -> void {
  const Recipe recipe;
  ForEachSection(recipe, [&](std::string_view, std::string_view, const auto& section) {
    ForEachKey(section, visit);
    ForEachList(section, [&](std::string_view, std::string_view, const auto& items) {
      const typename std::decay_t<decltype(items)>::value_type item;
      ForEachKey(item, visit);
    });
  });
}

/// Adds `; of "adamw" alone` where not every choice of the section has the key.
static auto AddOwners(RecipeKeyRow& row) -> void {
  const size_t num_choices = row.section == "model" ? CountOf<Family>() : CountOf<Optimizer>();
  const std::vector<std::string_view> owners =
      row.list.empty() ? OwnersOf(row.section, row.name) : std::vector<std::string_view>{};
  row.is_of_all = owners.empty() || owners.size() == num_choices;
  row.doc += row.is_of_all ? "" : fmt::format("; of {} alone", QuotedWords(owners));
}

/// `; default of "qwen2" and "qwen3": 1e-06` for each key of [model] of which a family has a default of its own.
static auto AddFamilyDefaults(std::vector<RecipeKeyRow>& rows) -> void {
  for (RecipeKeyRow& row : rows) {
    std::map<std::string, std::vector<std::string_view>> families;
    for (size_t i = 0; row.section == "model" && i < CountOf<Family>(); ++i) {
      Recipe recipe;
      recipe.model.family.value = OneOf(static_cast<Family>(i));
      TakeFamilyDefaults(recipe);
      ForEachKey(recipe.model, [&](const KeyInfo& key, const auto& leaf) {
        if (key.name == row.name && key.has_default() && WriteToml(leaf.value) != row.default_text) {
          families[WriteToml(leaf.value)].push_back(ToText(static_cast<Family>(i)));
        }
      });
    }
    for (const auto& [value, words] : families) {
      row.doc += fmt::format("; default of {}: {}", QuotedWords(words), value);
    }
  }
}

static auto MakeKeyRows() -> std::vector<RecipeKeyRow> {
  std::vector<RecipeKeyRow> rows;
  ForEachLeaf([&](const KeyInfo& key, const auto& leaf) {
    rows.push_back(MakeRow(key, WriteToml(leaf.value)));
    AddOwners(rows.back());
  });
  AddFamilyDefaults(rows);
  return rows;
}

static auto MakeSectionRows() -> std::vector<RecipeSectionRow> {
  std::vector<RecipeSectionRow> rows;
  const Recipe recipe;
  ForEachSection(recipe, [&](std::string_view name, std::string_view doc, const auto& section) {
    rows.push_back({std::string(name), "", std::string(doc)});
    ForEachList(section, [&](std::string_view list, std::string_view list_doc, const auto&) {
      rows.push_back({std::string(name), std::string(list), std::string(list_doc)});
    });
  });
  return rows;
}

auto RecipeKeyRows() -> const std::vector<RecipeKeyRow>& {
  static const std::vector<RecipeKeyRow> rows = MakeKeyRows();
  return rows;
}

auto KeyPaths() -> std::vector<std::string> {
  std::vector<std::string> paths;
  const Recipe recipe;
  ForEachSection(recipe, [&](std::string_view name, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto&) { paths.push_back(key.path()); });
    ForEachList(section, [&](std::string_view list, std::string_view, const auto&) {
      paths.push_back(fmt::format("{}.{}", name, list));
    });
  });
  return paths;
}

auto RecipeSectionRows() -> const std::vector<RecipeSectionRow>& {
  static const std::vector<RecipeSectionRow> rows = MakeSectionRows();
  return rows;
}

namespace {

/// The words of a set, those for later among them.
template <class E>
auto ChoicesOfSet() -> std::vector<Choice>;
#define WORDS(Enum)                                                 \
  template <>                                                       \
  [[maybe_unused]] auto ChoicesOfSet<Enum>()->std::vector<Choice> { \
    return {
#define WORD(Name, word) {word, true},
#define LATER(word) {word, false},
#define END_WORDS(Enum) \
  }                     \
  ;                     \
  }
#include "schemas/recipe_values.def"

/// Those of a key, by the type of its leaf; none for what is no word.
template <class T>
auto ChoicesOfType(const T&) -> std::vector<Choice> {
  return {};
}
template <class E>
auto ChoicesOfType(const OneOf<E>&) -> std::vector<Choice> {
  return ChoicesOfSet<E>();
}
auto ChoicesOfType(const FirstStart& first) -> std::vector<Choice> { return ChoicesOfType(first.word); }

}  // namespace

using Choices = std::map<std::string, std::vector<Choice>, std::less<>>;

static auto AllChoices() -> const Choices& {
  static const Choices all = [] {
    Choices choices;
    ForEachLeaf([&](const KeyInfo& key, const auto& leaf) {
      if (auto words = ChoicesOfType(leaf.value); !words.empty()) {
        choices[key.path()] = std::move(words);
      }
    });
    return choices;
  }();
  return all;
}

auto ChoicesOf(std::string_view path) -> const std::vector<Choice>& {
  static const std::vector<Choice> none;
  const auto found = AllChoices().find(path);
  return found == AllChoices().end() ? none : found->second;
}

auto PathsWithValues() -> std::vector<std::string> {
  std::vector<std::string> paths = PathsWithRanges();
  for (const auto& [path, words] : AllChoices()) {
    paths.push_back(path);
  }
  return paths;
}

}  // namespace shardc
