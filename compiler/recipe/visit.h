// Walks over the structs that the rows of recipe_keys.def make: one place that includes the table, for the reader, the
// printer and the reference to share.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

#include "compiler/recipe/recipe.h"

namespace shardc {

struct KeyInfo {
  std::string_view section;
  /// The list within the section whose tables hold the key; empty for a key of the section itself.
  std::string_view list;
  std::string_view name;
  std::string_view type;
  /// The default as spelled in the row: `REQUIRED`, `UNSET`, or an initialiser.
  std::string_view default_row;
  std::string_view doc;

  /// "optimizer.lr", "init.rule.value".
  auto path() const -> std::string {
    return list.empty() ? fmt::format("{}.{}", section, name) : fmt::format("{}.{}.{}", section, list, name);
  }
  auto is_required() const -> bool { return default_row == "REQUIRED"; }
  auto has_default() const -> bool { return !is_required() && default_row != "UNSET"; }
};

template <class S, class Struct>
concept MaybeConst = std::same_as<std::remove_const_t<S>, Struct>;

/// ForEachKey(table, visit): visit(const KeyInfo&, Located<T>&) for each key of a section or of a list's table.
#define SECTION(name_, Struct, doc_)       \
  template <MaybeConst<Struct> S, class F> \
  auto ForEachKey(S& table, F&& visit)->void {
#define KEY(section_, name_, Type, default_, doc_) \
  visit(KeyInfo{#section_, "", #name_, #Type, #default_, doc_}, table.name_);
#define END_SECTION(name_) }
#include "schemas/recipe_keys.def"

#define LIST(section_, name_, Struct, doc_) \
  template <MaybeConst<Struct> S, class F>  \
  auto ForEachKey(S& table, F&& visit)->void {
#define ITEM(section_, list_, name_, Type, default_, doc_) \
  visit(KeyInfo{#section_, #list_, #name_, #Type, #default_, doc_}, table.name_);
#define END_LIST(section_, name_) }
#include "schemas/recipe_keys.def"

/// ForEachList(section, visit): visit(name, doc, std::vector<Struct>&) for each list of a section.
#define SECTION(name_, Struct, doc_)       \
  template <MaybeConst<Struct> S, class F> \
  auto ForEachList([[maybe_unused]] S& table, [[maybe_unused]] F&& visit)->void {
#define END_SECTION(name_) }
#define LIST(section_, name_, Struct, doc_) visit(std::string_view(#name_), std::string_view(doc_), table.name_);
#include "schemas/recipe_keys.def"

/// ForEachSection(recipe, visit): visit(name, doc, Struct&) for each section.
template <MaybeConst<Recipe> R, class F>
auto ForEachSection(R& recipe, F&& visit) -> void {
#define SECTION(name_, Struct, doc_) visit(std::string_view(#name_), std::string_view(doc_), recipe.name_);
#include "schemas/recipe_keys.def"
}

}  // namespace shardc
