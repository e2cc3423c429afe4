// A recipe as typed structs, made from the rows of schemas/recipe_keys.def. Each leaf keeps its place in the text.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/diag/source.h"
#include "compiler/keys/sections.h"

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

template <class T>
auto IsSet(const Located<T>& leaf) -> bool {
  return leaf.is_set;
}

/// The form of the sections in which a text gives them.
struct InRecipe {
  using Place = SourceRange;
  template <class T>
  using Leaf = Located<T>;
  template <class T, class D>
  static auto MakeLeaf(const D& default_) -> Located<T> {
    return {key_type::DefaultOf<T>(default_), {}};
  }
};

using FirstStart = FirstStartOf<InRecipe>;
#define SECTION(name, Struct, doc) using Struct = Struct##Of<InRecipe>;
#define LIST(section, name, Struct, doc) using Struct = Struct##Of<InRecipe>;
#include "schemas/recipe_keys.def"

/// A text of ours that stands in for keys that the user's texts do not set (compiler/recipe/presets.h).
struct StandIn {
  int16_t source = -1;
  /// "preset llama3-8b", "assumed".
  std::string name;
  bool is_assumed = false;
};

struct Recipe : RecipeSections<InRecipe> {
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
