// The sections of a recipe as structs, and walks over them, made from the rows of schemas/recipe_keys.def. Each struct
// has two forms: InRecipe, in which a leaf knows its place in the text (compiler/recipe/recipe.h), and InPlan, in which
// a leaf is a value or unset (plan_keys.h). A form gives
//
//   Leaf<T>                what holds the value of a key
//   Place                  what a section and a table have beside their keys
//   MakeLeaf<T>(default)   a leaf as it is before anything is read
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "compiler/keys/key_types.h"

namespace shardc {

template <class Form, class T>
using LeafOf = typename Form::template Leaf<key_type::In<Form, T>>;

#define REQUIRED key_type::NoDefault()
#define UNSET key_type::NoDefault()
#define BEGIN_STRUCT(Struct)                                                \
  template <class F>                                                        \
  struct Struct {                                                           \
    using Form = F;                                                         \
    friend auto operator==(const Struct&, const Struct&) -> bool = default; \
    /* The whole table. */                                                  \
    [[no_unique_address]] typename F::Place at;
#define MEMBER(name, Type, default_) \
  LeafOf<F, key_type::Type> name = F::template MakeLeaf<key_type::In<F, key_type::Type>>(default_);
#define END_STRUCT(...) \
  }                     \
  ;

// Items of lists first, as the sections hold vectors of them.
#define LIST(section, name, Struct, doc) BEGIN_STRUCT(Struct##Of)
#define ITEM(section, list, name, Type, default_, doc) MEMBER(name, Type, default_)
#define END_LIST END_STRUCT
#include "schemas/recipe_keys.def"

#define SECTION(name, Struct, doc) BEGIN_STRUCT(Struct##Of)
#define KEY(section, name, Type, default_, doc) MEMBER(name, Type, default_)
#define LIST(section, name, Struct, doc) std::vector<Struct##Of<F>> name;
#define END_SECTION END_STRUCT
#include "schemas/recipe_keys.def"
#undef BEGIN_STRUCT
#undef MEMBER
#undef END_STRUCT
#undef REQUIRED
#undef UNSET

template <class F>
struct RecipeSections {
  using Form = F;
#define SECTION(name, Struct, doc) Struct##Of<F> name;
#include "schemas/recipe_keys.def"
  friend auto operator==(const RecipeSections&, const RecipeSections&) -> bool = default;
};

/// The row of a key.
struct KeyInfo {
  std::string_view section;
  /// The list within the section whose tables hold the key; empty for a key of the section itself.
  std::string_view list;
  std::string_view name;
  std::string_view type;
  /// The default as spelled in the row: `REQUIRED`, `UNSET`, or an initialiser.
  std::string_view default_row;
  std::string_view doc;

  /// Returns "optimizer.lr", "init.rule.value".
  auto path() const -> std::string {
    return list.empty() ? fmt::format("{}.{}", section, name) : fmt::format("{}.{}.{}", section, list, name);
  }
  auto is_required() const -> bool { return default_row == "REQUIRED"; }
  auto has_default() const -> bool { return !is_required() && default_row != "UNSET"; }
};

/// Holds for a struct in any form, const or not.
template <class S, template <class> class Struct>
concept SomeForm = std::same_as<std::remove_const_t<S>, Struct<typename S::Form>>;

/// WalkKeys(visit, table, more...): visit(const KeyInfo&, leaf, more...) for each key of a section or of a list's
/// table, with the leaves of that key in all tables, which may have other forms.
#define SECTION(name_, Struct, doc_)                        \
  template <class V, SomeForm<Struct##Of> S, class... More> \
  auto WalkKeys(V&& visit, S& table, More&... more)->void {
#define KEY(section_, name_, Type, default_, doc_) \
  visit(KeyInfo{#section_, "", #name_, #Type, #default_, doc_}, table.name_, more.name_...);
#define END_SECTION(name_) }
#include "schemas/recipe_keys.def"

#define LIST(section_, name_, Struct, doc_)                 \
  template <class V, SomeForm<Struct##Of> S, class... More> \
  auto WalkKeys(V&& visit, S& table, More&... more)->void {
#define ITEM(section_, list_, name_, Type, default_, doc_) \
  visit(KeyInfo{#section_, #list_, #name_, #Type, #default_, doc_}, table.name_, more.name_...);
#define END_LIST(section_, name_) }
#include "schemas/recipe_keys.def"

/// WalkLists(visit, section, more...): visit(name, doc, tables, more...) for each list of a section.
#define SECTION(name_, Struct, doc_)                        \
  template <class V, SomeForm<Struct##Of> S, class... More> \
  auto WalkLists([[maybe_unused]] V&& visit, [[maybe_unused]] S& table, [[maybe_unused]] More&... more)->void {
#define END_SECTION(name_) }
#define LIST(section_, name_, Struct, doc_) \
  visit(std::string_view(#name_), std::string_view(doc_), table.name_, more.name_...);
#include "schemas/recipe_keys.def"

/// Calls visit(name, doc, section, more...) for each section.
template <class V, class S, class... More>
requires std::derived_from<std::remove_const_t<S>, RecipeSections<typename S::Form>>
auto WalkSections(V&& visit, S& sections, More&... more) -> void {
#define SECTION(name_, Struct, doc_) \
  visit(std::string_view(#name_), std::string_view(doc_), sections.name_, more.name_...);
#include "schemas/recipe_keys.def"
}

/// Walks over one table.
template <class S, class V>
auto ForEachKey(S& table, V&& visit) -> void {
  WalkKeys(visit, table);
}
template <class S, class V>
requires requires(S& section, V& visit) { WalkLists(visit, section); }
auto ForEachList(S& section, V&& visit) -> void { WalkLists(visit, section); }
template <class S, class V>
auto ForEachSection(S& sections, V&& visit) -> void {
  WalkSections(visit, sections);
}

}  // namespace shardc
