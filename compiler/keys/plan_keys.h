// The keys of the recipe that a plan was made from, as typed values. The lines `recipe` of a plan state them as text;
// what a line does not state is unset.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/keys/origin_key.h"
#include "compiler/keys/recipe_entry.h"
#include "compiler/keys/sections.h"

namespace shardc {

/// The form of the sections in which a plan states them.
struct InPlan {
  struct Place {
    friend auto operator==(const Place&, const Place&) -> bool = default;
  };
  template <class T>
  using Leaf = std::optional<T>;
  template <class T, class D>
  static auto MakeLeaf(const D&) -> std::optional<T> {
    return std::nullopt;
  }
};

using PlanKeys = RecipeSections<InPlan>;

/// A refused entry and the reason.
struct KeyFault {
  std::string key;
  std::string message;
};

struct KeysRead {
  PlanKeys keys;
  /// Entries that are not in `keys`, in the order of the rows; those of no row come last.
  std::vector<KeyFault> faults;
};

/// Reads entries. A value is in TOML as the compiler writes it, of the type of its key and in the key's range.
auto ReadKeys(std::span<const RecipeEntry> entries) -> KeysRead;
/// Reads the values in TOML of keys.
auto ReadKeys(const std::map<std::string, std::string>& recipe) -> KeysRead;

/// Returns an entry for each key that is set and each list that has tables, in the order of the rows. Reading them
/// gives the same keys.
auto WriteKeys(const PlanKeys& keys) -> std::vector<RecipeEntry>;

/// Returns the value of a key as `--set` takes it, without quotes; empty if it is unset.
auto ValueText(const PlanKeys& keys, OriginKey key) -> std::string;

/// A key whose values differ, in TOML; empty where it is unset.
struct KeyDifference {
  std::string key;
  std::string a;
  std::string b;
};
/// Returns "model.seq 1024 -> 4096", and of long values "another value of data.source".
auto ToText(const KeyDifference& change) -> std::string;
/// Returns what differs, in the order of the rows.
auto DifferencesOf(const PlanKeys& a, const PlanKeys& b) -> std::vector<KeyDifference>;

}  // namespace shardc
