#include "compiler/keys/plan_keys.h"

#include <algorithm>

#include "compiler/base/byte_limit.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/keys/key_values.h"
#include "compiler/keys/toml_value.h"

namespace shardc {

namespace {

using Kind = TomlValue::Kind;

auto Read(const TomlValue& from, int64_t& value) -> bool {
  const auto number = ParseWhole<int64_t>(from.text);
  value = number.value_or(0);
  return from.kind == Kind::Number && number;
}

auto Read(const TomlValue& from, double& value) -> bool {
  value = ParseWhole<double>(from.text).value_or(0);
  return from.kind == Kind::Number;
}

auto Read(const TomlValue& from, bool& value) -> bool {
  value = from.text == "true";
  return from.kind == Kind::Bool;
}

auto Read(const TomlValue& from, std::string& value) -> bool {
  value = from.text;
  return from.kind == Kind::Text;
}

template <class T>
auto Read(const TomlValue& from, std::vector<T>& values) -> bool {
  return from.kind == Kind::List &&
         std::ranges::all_of(from.items, [&](const TomlValue& item) { return Read(item, values.emplace_back()); });
}

template <class E>
auto Read(const TomlValue& from, OneOf<E>& word) -> bool {
  word = OneOf<E>(from.text);
  return from.kind == Kind::Text && word.is_accepted();
}

auto Read(const TomlValue& from, Formula& formula) -> bool {
  formula.text = from.text;
  return from.kind == Kind::Text || from.kind == Kind::Number;
}

auto Read(const TomlValue& from, ByteSize& size) -> bool {
  size.text = from.text;
  return from.kind == (from.text == "0" ? Kind::Number : Kind::Text) && ParseByteLimit(from.text).has_value();
}

auto Read(const TomlValue& from, Condition& condition) -> bool {
  condition.text = from.text;
  return from.kind == Kind::Text || from.kind == Kind::Bool;
}

template <class T>
auto Read(const TomlValue& from, std::optional<T>& value) -> bool {
  return Read(from, value.emplace());
}

auto Read(const TomlValue& from, FirstStartOf<InPlan>& first) -> bool {
  if (from.kind != Kind::Table) {
    return Read(from, first.word);
  }
  const auto read = [&](const auto& member) {
    const auto& [name, value] = member;
    return (name == "seed" && Read(value, first.seed)) || (name == "continue" && Read(value, first.continued)) ||
           (name == "adapter" && Read(value, first.adapter)) || (name == "reset" && Read(value, first.reset)) ||
           (name == "missing" && Read(value, first.missing)) || (name == "unused" && Read(value, first.unused));
  };
  return std::ranges::all_of(from.members, read) && first.seed.has_value() != first.continued.has_value();
}

/// Returns true if the key has no range, or one that a number lies in.
template <class T>
auto IsInRange(const KeyInfo& key, const T& value) -> bool {
  if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, double>) {
    const auto range = RangeOf(key.path());
    return !range || range->Holds(static_cast<double>(value));
  } else {
    return true;
  }
}

/// Returns "a whole number from 0 to 65536".
auto Wanted(const KeyInfo& key) -> std::string {
  const auto range = RangeOf(key.path());
  return fmt::format("{}{}", DescribeType(key.type),
                     range ? fmt::format(" from {} to {}", range->low_text, range->high_text) : "");
}

class EntryReader {
 public:
  explicit EntryReader(std::span<const RecipeEntry> entries) {
    for (const RecipeEntry& entry : entries) {
      left_.emplace(entry.key, &entry.value);
    }
  }

  auto ReadAll() -> KeysRead {
    ForEachSection(read_.keys, [&](std::string_view name, std::string_view, auto& section) {
      ForEachKey(section, [&](const KeyInfo& key, auto& leaf) {
        if (const std::string* text = Take(key.path())) {
          const auto value = ReadToml(*text);
          if (!value || !ReadLeaf(key, *value, leaf)) {
            Refuse(key.path(), *text, Wanted(key));
          }
        }
      });
      ForEachList(section, [&](std::string_view list, std::string_view, auto& tables) {
        const std::string path = fmt::format("{}.{}", name, list);
        if (const std::string* text = Take(path); text != nullptr && !ReadTables(*text, tables)) {
          tables.clear();
          Refuse(path, *text, fmt::format("a list of tables with the keys of [[{}]]", path));
        }
      });
    });
    for (const auto& [key, value] : left_) {
      read_.faults.push_back({key, fmt::format("`{}` is no key of a recipe", key)});
    }
    return std::move(read_);
  }

 private:
  /// Returns the text of a key, which counts as read then; null if no entry has the key.
  auto Take(const std::string& path) -> const std::string* {
    const auto found = left_.find(path);
    if (found == left_.end()) {
      return nullptr;
    }
    const std::string* text = found->second;
    left_.erase(found);
    return text;
  }
  auto Refuse(std::string key, std::string_view text, std::string_view wanted) -> void {
    std::string message = fmt::format("the line `recipe {}` has {}, and the key takes {}", key, text, wanted);
    read_.faults.push_back({std::move(key), std::move(message)});
  }
  template <class T>
  static auto ReadLeaf(const KeyInfo& key, const TomlValue& from, std::optional<T>& leaf) -> bool {
    if (!Read(from, leaf.emplace()) || !IsInRange(key, *leaf)) {
      leaf.reset();
    }
    return leaf.has_value();
  }
  template <class Table>
  static auto ReadTables(const std::string& text, std::vector<Table>& tables) -> bool {
    const auto list = ReadToml(text);
    return list && list->kind == Kind::List && !list->items.empty() &&
           std::ranges::all_of(list->items,
                               [&](const TomlValue& item) { return ReadTable(item, tables.emplace_back()); });
  }
  template <class Table>
  static auto ReadTable(const TomlValue& from, Table& table) -> bool {
    size_t num_read = 0;
    bool is_complete = from.kind == Kind::Table;
    ForEachKey(table, [&](const KeyInfo& key, auto& leaf) {
      for (const auto& [name, value] : from.members) {
        num_read += name == key.name && !leaf && ReadLeaf(key, value, leaf) ? 1 : 0;
      }
      is_complete = is_complete && (leaf || !key.is_required());
    });
    return is_complete && num_read == from.members.size();
  }

  std::map<std::string, const std::string*> left_;
  KeysRead read_;
};

/// Returns `{ match = "*", value = 1 }`.
template <class Table>
auto InlineTable(const Table& table) -> std::string {
  std::string text;
  ForEachKey(table, [&](const KeyInfo& key, const auto& leaf) {
    if (leaf) {
      text += fmt::format("{}{} = {}", text.empty() ? "{ " : ", ", key.name, WriteToml(*leaf));
    }
  });
  return text + " }";
}

}  // namespace

auto ReadKeys(std::span<const RecipeEntry> entries) -> KeysRead { return EntryReader(entries).ReadAll(); }

auto ReadKeys(const std::map<std::string, std::string>& recipe) -> KeysRead {
  std::vector<RecipeEntry> entries;
  for (const auto& [key, value] : recipe) {
    entries.push_back({.key = key, .value = value});
  }
  return ReadKeys(entries);
}

/// Returns the tables of a list in TOML; an empty text for an empty list.
template <class Table>
static auto WriteTables(const std::vector<Table>& tables) -> std::string {
  std::string text;
  for (const Table& table : tables) {
    text += (text.empty() ? "[" : ", ") + InlineTable(table);
  }
  return text.empty() ? "" : text + "]";
}

auto WriteKeys(const PlanKeys& keys) -> std::vector<RecipeEntry> {
  std::vector<RecipeEntry> entries;
  ForEachSection(keys, [&](std::string_view name, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (leaf) {
        entries.push_back({.key = key.path(), .value = WriteToml(*leaf)});
      }
    });
    ForEachList(section, [&](std::string_view list, std::string_view, const auto& tables) {
      if (!tables.empty()) {
        entries.push_back({.key = fmt::format("{}.{}", name, list), .value = WriteTables(tables)});
      }
    });
  });
  return entries;
}

auto ValueText(const PlanKeys& keys, OriginKey wanted) -> std::string {
  std::string text;
  ForEachSection(keys, [&](std::string_view, std::string_view, const auto& section) {
    ForEachKey(section, [&](const KeyInfo& key, const auto& leaf) {
      if (leaf && wanted.text().starts_with(key.section) && key.path() == wanted.text()) {
        text = WriteToml(*leaf);
      }
    });
  });
  return text.starts_with('"') ? text.substr(1, text.size() - 2) : text;
}

auto ToText(const KeyDifference& change) -> std::string {
  constexpr size_t MostShown = 400;
  const auto text = [](const std::string& value) { return value.empty() ? "unset" : PrintableLine(value); };
  const std::string key = PrintableLine(change.key);
  const std::string was = text(change.a);
  const std::string is = text(change.b);
  return was.size() > MostShown || is.size() > MostShown ? fmt::format("another value of {}", key)
                                                         : fmt::format("{} {} -> {}", key, was, is);
}

auto DifferencesOf(const PlanKeys& a, const PlanKeys& b) -> std::vector<KeyDifference> {
  std::vector<KeyDifference> differences;
  WalkSections(
      [&](std::string_view name, std::string_view, const auto& of_a, const auto& of_b) {
        WalkKeys(
            [&](const KeyInfo& key, const auto& leaf_a, const auto& leaf_b) {
              if (leaf_a != leaf_b) {
                differences.push_back({key.path(), leaf_a ? WriteToml(*leaf_a) : "", leaf_b ? WriteToml(*leaf_b) : ""});
              }
            },
            of_a, of_b);
        WalkLists(
            [&](std::string_view list, std::string_view, const auto& tables_a, const auto& tables_b) {
              if (tables_a != tables_b) {
                differences.push_back({fmt::format("{}.{}", name, list), WriteTables(tables_a), WriteTables(tables_b)});
              }
            },
            of_a, of_b);
      },
      a, b);
  return differences;
}

}  // namespace shardc
