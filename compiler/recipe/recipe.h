// A recipe as typed structs, made from the rows of schemas/recipe_keys.def. Each leaf keeps its place in the text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/error_or.h"
#include "compiler/base/recipe_words.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/diag/source.h"

namespace shardc {

/// A leaf: its value (the default if absent) and where it was set.
template <class T>
struct Located {
  T value{};
  SourceRange at;
  bool is_set = false;
  /// False if the recipe is meant to give a value that could not be read: one that is missing, misspelt, of another
  /// type, or part of a text that is not TOML. That has been reported, and nothing else can be said of the value.
  bool is_known = true;

  auto operator*() const -> const T& { return value; }
  auto operator->() const -> const T* { return &value; }
};

/// The word of a key that takes a few: one of E's. What else a recipe says is kept as text, for CheckValues to refuse.
template <NamedEnum E>
class OneOf {
 public:
  OneOf() = default;
  explicit OneOf(E value) : text_(ToText(value)), value_(value) {}
  explicit OneOf(std::string text) : text_(std::move(text)), value_(FromText<E>(text_)) {}

  auto text() const -> const std::string& { return text_; }
  auto is_accepted() const -> bool { return value_.has_value(); }
  /// So that it stands in a switch and in comparisons as the enumerator. Requires: it is accepted.
  operator E() const {
    CHECK(value_, "`{}` is read as a word that it is not", text_);
    return *value_;
  }

 private:
  std::string text_;
  std::optional<E> value_;
};

/// `true`, `false`, or the text of a boolean expression.
struct Condition {
  std::string text = "false";
};

/// A number or the text of an expression, kept as text.
struct Formula {
  std::string text;
};

/// 0 or the text of a size in bytes, such as "4 GiB", kept as text.
struct ByteSize {
  std::string text;
};

/// The value of start.first: a word, or the table { seed = ..., missing = [...], unused = [...] }.
struct FirstStart {
  /// Unset where it is a table.
  OneOf<StartFrom> word;
  /// Set in a table, always.
  Located<std::string> seed = {};
  Located<std::vector<std::string>> missing = {};
  Located<std::vector<std::string>> unused = {};
};

namespace recipe_type {
using Int = int64_t;
using Real = double;
using Bool = bool;
using Text = std::string;
using Texts = std::vector<std::string>;
using Reals = std::vector<double>;
template <class E>
using OneOf = shardc::OneOf<E>;
using Formula = shardc::Formula;
using ByteSize = shardc::ByteSize;
using Condition = shardc::Condition;
using FirstStart = shardc::FirstStart;

/// Stands for REQUIRED and UNSET in the rows: the value-initialised value.
struct NoDefault {
  template <class T>
  auto operator()() const -> T {
    return T{};
  }
};
template <class T, class D>
auto DefaultOf(const D& value) -> T {
  if constexpr (std::is_same_v<D, NoDefault>) {
    return T{};
  } else if constexpr (std::is_same_v<T, shardc::Condition> || std::is_same_v<T, shardc::Formula> ||
                       std::is_same_v<T, shardc::ByteSize>) {
    return T{.text = value};
  } else if constexpr (std::is_same_v<T, shardc::FirstStart>) {
    return T{.word = shardc::OneOf<StartFrom>(value)};
  } else {
    return T(value);
  }
}
}  // namespace recipe_type

// Items of lists first, as the sections hold vectors of them.
#define REQUIRED recipe_type::NoDefault()
#define UNSET recipe_type::NoDefault()
#define LIST(section, name, Struct, doc) \
  struct Struct {                        \
    /* The whole table. */               \
    SourceRange at;
#define ITEM(section, list, name, Type, default_, doc) \
  Located<recipe_type::Type> name{recipe_type::DefaultOf<recipe_type::Type>(default_), {}};
#define END_LIST(section, name) \
  }                             \
  ;
#include "schemas/recipe_keys.def"

#define SECTION(name, Struct, doc) \
  struct Struct {                  \
    SourceRange at;
#define KEY(section, name, Type, default_, doc) \
  Located<recipe_type::Type> name{recipe_type::DefaultOf<recipe_type::Type>(default_), {}};
#define END_SECTION(name) \
  }                       \
  ;
#define LIST(section, name, Struct, doc) std::vector<Struct> name;
#include "schemas/recipe_keys.def"

/// A text of ours that stands in for keys that the user's texts do not set (compiler/recipe/presets.h).
struct StandIn {
  int16_t source = -1;
  /// "preset llama3-8b", "assumed".
  std::string name;
  bool is_assumed = false;
};

struct Recipe {
#define SECTION(name, Struct, doc) Struct name;
#include "schemas/recipe_keys.def"
  /// As given by the user.
  std::string path;
  /// The `--set` texts, in order.
  std::vector<std::string> overrides;
  /// Lists of tables that could not be read, as "init.rule"; that has been reported.
  std::set<std::string, std::less<>> unread_lists;
  std::vector<StandIn> stand_ins;

  /// The text of ours in which a key is set; null if the key is set by the user, or not at all.
  auto StandInAt(const SourceRange& at) const -> const StandIn* {
    for (const StandIn& text : stand_ins) {
      if (text.source == at.source) {
        return &text;
      }
    }
    return nullptr;
  }
  auto IsAssumed(const SourceRange& at) const -> bool {
    const StandIn* text = StandInAt(at);
    return text != nullptr && text->is_assumed;
  }
};
#undef REQUIRED
#undef UNSET

/// What the recipe leaves out beside a preset of a model: refuse it as elsewhere, or assume what lets it be planned.
enum class LeftOut { Refuse, Assume };

/// Reads a recipe: TOML text, then each override (`section.key=value`, value in TOML or a bare word for text) as recipe
/// text of its own. Unknown keys, wrong types and absent required keys are diagnosed, all at once.
/// Errors: empty-message Error with ExitCode::RecipeRejected after diagnostics were emitted.
auto ReadRecipe(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                SourceSet& sources, Diagnostics& diagnostics, LeftOut left_out = LeftOut::Refuse) -> ErrorOr<Recipe>;

/// Reads as ReadRecipe does. If there are faults, the recipe holds what could be read beside them, and is for further
/// checks alone. After a fault of syntax nothing in it is known but what the overrides set.
auto ReadSoundParts(const std::string& path, std::string text, const std::vector<std::string>& overrides,
                    SourceSet& sources, Diagnostics& diagnostics, LeftOut left_out) -> Recipe;

/// As if by `--set mesh.hosts=N`, if the recipe does not say on how many hosts it runs, and if its ranks lie on N hosts
/// in equal numbers. Requires: num_hosts is at least 1 and below 2^31.
auto SetHosts(int64_t num_hosts, Recipe& recipe, SourceSet& sources, Diagnostics& diagnostics) -> void;

}  // namespace shardc
