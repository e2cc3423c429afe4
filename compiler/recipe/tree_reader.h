// TOML tree to Recipe, by the rows of recipe_keys.def: every key is read by its row, and every key without a row is an
// error. What a misspelt or broken key stood for is kept, so that its absence is not reported besides. value_reader.h
// reads the values.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/keys/sections.h"
#include "compiler/recipe/least_recipe.h"
#include "compiler/recipe/owned_keys.h"
#include "compiler/recipe/toml_tree.h"
#include "compiler/recipe/unknown_keys.h"
#include "compiler/recipe/value_reader.h"

namespace shardc {

/// Reads the texts of one recipe, one after another.
class TreeReader {
 public:
  /// `fills`: of the texts that it reads, it takes only the keys that no text before has set.
  TreeReader(Recipe& recipe, Diagnostics& diagnostics, bool fills = false)
      : recipe_(recipe), diagnostics_(diagnostics), values_(diagnostics), fills_(fills) {}

  /// Keeps what is missing in the section from being reported.
  auto Excuse(std::string_view section) -> void { excused_sections_.insert(section); }
  /// Keeps all that is missing from being reported: the text of the recipe was not read.
  auto ExcuseAll() -> void {
    ForEachSection(recipe_, [&](std::string_view name, std::string_view, const auto&) { ExcuseSection(name); });
  }

  /// Puts the values of a text over those read before.
  auto ReadRoot(const TomlNode& root) -> void {
    for (const TomlEntry& entry : root.entries) {
      if (ReadNamed(entry, entry.key)) {
        continue;
      }
      const Meant meant = ReportUnknownAtTop(entry, diagnostics_);
      ExcuseSection(meant.name);
      ExcuseKeys(meant.keys);
      if (IsSlipOf(entry.key, meant.name)) {
        const Guess guess(*this);
        ReadNamed(entry, meant.name);
      }
    }
  }

  /// Reports what no text has given.
  auto ReportMissing(const SourceRange& file) -> void {
    bool is_told_least = false;
    ForEachSection(recipe_, [&](std::string_view name, std::string_view, auto& section) {
      const bool is_excused =
          excused_sections_.contains(name) || (excused_.contains(std::string(name)) && !section.at.valid());
      std::string missing;
      ForEachKey(section, [&](const KeyInfo& key, auto& leaf) {
        leaf.is_known = leaf.is_known && !(is_excused && !leaf.is_set);
        if (IsMissing(key, leaf)) {
          leaf.is_known = false;
          if (!excused_.contains(ExcuseOf(fmt::format("[{}]", name), key.name))) {
            missing += fmt::format("{}`{}`", missing.empty() ? "" : ", ", key.name);
          }
        }
      });
      if (is_excused) {
        ForEachList(section, [&](std::string_view list, std::string_view, const auto&) {
          recipe_.unread_lists.insert(fmt::format("{}.{}", name, list));
        });
      }
      if (missing.empty() || is_excused) {
        return;
      }
      if (!section.at.valid()) {
        auto builder = diagnostics_.Build(file, DiagnosticKind::MissingSection, name, missing);
        builder.Help(IsEmpty() && !std::exchange(is_told_least, true)
                         ? fmt::format("the least recipe:\n{}", LeastRecipe())
                         : "");
        builder.Emit();
      } else {
        ReportMissingKeys(section, section.at, fmt::format("[{}]", name));
      }
    });
  }

 private:
  /// While it lives, keys are read under a name that was guessed: they yield to those that are given by name.
  class Guess {
   public:
    explicit Guess(TreeReader& reader) : reader_(reader), before_(std::exchange(reader.is_guess_, true)) {}
    ~Guess() { reader_.is_guess_ = before_; }
    Guess(const Guess&) = delete;
    auto operator=(const Guess&) -> Guess& = delete;

   private:
    TreeReader& reader_;
    bool before_;
  };

  template <class T>
  auto IsMissing(const KeyInfo& key, const Located<T>& leaf) const -> bool {
    return key.is_required() && !leaf.is_set && !IsLacked(recipe_, key.section, key.name);
  }

  /// Returns true if no section was given.
  auto IsEmpty() const -> bool {
    bool is_empty = excused_.empty();
    ForEachSection(recipe_, [&](std::string_view, std::string_view, const auto& section) {
      is_empty = is_empty && !section.at.valid();
    });
    return is_empty;
  }

  /// Returns false if no section has the name.
  auto ReadNamed(const TomlEntry& entry, std::string_view wanted) -> bool {
    bool found = false;
    ForEachSection(recipe_, [&](std::string_view name, std::string_view, auto& section) {
      if (wanted == name) {
        found = true;
        ReadSection(entry, name, section);
      }
    });
    return found;
  }

  template <class Section>
  auto ReadSection(const TomlEntry& entry, std::string_view name, Section& section) -> void {
    if (entry.value.kind != TomlNode::Kind::Table) {
      ExcuseSection(name);
      diagnostics_.Report(entry.value.at, DiagnosticKind::WrongType, name, Describe(entry.value),
                          fmt::format("a table, [{}]", name));
      return;
    }
    if (!section.at.valid()) {
      section.at = entry.value.at;
    }
    for (const TomlEntry& inner : entry.value.entries) {
      if (ReadKeyOrList(inner, inner.key, name, section)) {
        continue;
      }
      const std::string meant = ReportUnknown(inner, fmt::format("[{}]", name), SiblingsOf(section));
      if (IsSlipOf(inner.key, meant)) {
        const Guess guess(*this);
        ReadKeyOrList(inner, meant, name, section);
      } else if (!meant.empty()) {
        MarkUnread(section, name, meant);
      }
    }
  }

  /// Notes that the section is given, and could not be read. That of the model may have named a preset.
  auto ExcuseSection(std::string_view name) -> void {
    excused_.emplace(name);
    recipe_.model.preset.is_known = recipe_.model.preset.is_known && name != "model";
  }

  /// Notes that keys, as "batch.global", are given by other names.
  auto ExcuseKeys(const std::vector<std::string>& paths) -> void {
    for (const std::string& path : paths) {
      ForEachSection(recipe_, [&](std::string_view name, std::string_view, auto& section) {
        const std::string prefix = fmt::format("{}.", name);
        if (path.starts_with(prefix)) {
          const std::string key = path.substr(prefix.size());
          excused_.insert(ExcuseOf(fmt::format("[{}]", name), key));
          MarkUnread(section, name, key);
        }
      });
    }
  }

  /// Notes that the key or list `meant` is given in a way that could not be read.
  template <class Section>
  auto MarkUnread(Section& section, std::string_view name, std::string_view meant) -> void {
    ForEachKey(section, [&](const KeyInfo& key, auto& leaf) {
      leaf.is_known = leaf.is_known && (key.name != meant || leaf.is_set);
    });
    ForEachList(section, [&](std::string_view list, std::string_view, const auto& items) {
      if (list == meant && items.empty()) {
        recipe_.unread_lists.insert(fmt::format("{}.{}", name, list));
      }
    });
  }

  template <class Section>
  auto ReadKeyOrList(const TomlEntry& entry, std::string_view wanted, std::string_view name, Section& section) -> bool {
    bool found = ReadKey(entry, wanted, section);
    ForEachList(section, [&](std::string_view list, std::string_view, auto& items) {
      if (wanted == list) {
        found = true;
        if (!is_guess_ || items.empty()) {
          ReadItems(entry, fmt::format("{}.{}", name, list), items);
        }
      }
    });
    return found;
  }

  /// Reads a list, which replaces that of an earlier text.
  template <class Item>
  auto ReadItems(const TomlEntry& entry, const std::string& path, std::vector<Item>& items) -> void {
    const bool is_list = entry.value.kind == TomlNode::Kind::Array;
    if (!is_list) {
      recipe_.unread_lists.insert(path);
      // Under a name that was guessed, the name is the fault.
      if (is_guess_) {
        return;
      }
      diagnostics_.Report(entry.value.at, DiagnosticKind::WrongType, entry.key, Describe(entry.value),
                          fmt::format("a list of tables, [[{}]]", path));
      return;
    }
    items.clear();
    for (const TomlNode& node : entry.value.items) {
      if (node.kind != TomlNode::Kind::Table) {
        recipe_.unread_lists.insert(path);
        diagnostics_.Report(node.at, DiagnosticKind::WrongType, entry.key,
                            fmt::format("a list with {}", Describe(node)),
                            fmt::format("a list of tables, [[{}]]", path));
        continue;
      }
      Item item;
      item.at = node.at;
      for (const TomlEntry& inner : node.entries) {
        if (!ReadKey(inner, inner.key, item)) {
          const std::string meant = ReportUnknown(inner, fmt::format("[[{}]]", path), SiblingsOf(item));
          if (IsSlipOf(inner.key, meant)) {
            const Guess guess(*this);
            ReadKey(inner, meant, item);
          }
        }
      }
      ReportMissingKeys(item, item.at, fmt::format("[[{}]]", path));
      // Another table of the list is one of its own.
      std::erase_if(excused_, [prefix = ExcuseOf(fmt::format("[[{}]]", path), "")](const std::string& excuse) {
        return excuse.starts_with(prefix);
      });
      items.push_back(std::move(item));
    }
  }

  template <class Table>
  auto ReadKey(const TomlEntry& entry, std::string_view wanted, Table& table) -> bool {
    bool found = false;
    ForEachKey(table, [&](const KeyInfo& key, auto& leaf) {
      if (wanted != key.name) {
        return;
      }
      found = true;
      if ((is_guess_ || fills_) && leaf.is_set) {
        return;
      }
      leaf.at = entry.value.at;
      // A value of the wrong type counts as given: its absence is not reported besides.
      leaf.is_set = true;
      leaf.is_known = values_.ReadLeaf(key, entry.value, leaf.value);
    });
    return found;
  }

  static auto ExcuseOf(std::string_view where, std::string_view key) -> std::string {
    return fmt::format("{}.{}", where, key);
  }

  template <class Table>
  auto ReportMissingKeys(Table& table, const SourceRange& at, const std::string& where) -> void {
    ForEachKey(table, [&](const KeyInfo& key, auto& leaf) {
      if (!IsMissing(key, leaf)) {
        return;
      }
      leaf.is_known = false;
      if (!excused_.contains(ExcuseOf(where, key.name))) {
        diagnostics_.Report(at, DiagnosticKind::MissingKey, key.name, where, key.doc);
      }
    });
  }

  template <class Table>
  static auto SiblingsOf(const Table& table) -> std::vector<std::string_view> {
    std::vector<std::string_view> names;
    ForEachKey(table, [&](const KeyInfo& key, const auto&) { names.push_back(key.name); });
    if constexpr (requires { ForEachList(table, [](auto&&...) {}); }) {
      ForEachList(table, [&](std::string_view list, std::string_view, const auto&) { names.push_back(list); });
    }
    return names;
  }

  /// Returns the sibling that was probably meant, or "".
  auto ReportUnknown(const TomlEntry& entry, const std::string& where, const std::vector<std::string_view>& siblings)
      -> std::string {
    Meant meant = ReportUnknownKey(entry, where, siblings, diagnostics_);
    if (!meant.name.empty()) {
      excused_.insert(ExcuseOf(where, meant.name));
    }
    ExcuseKeys(meant.keys);
    return std::move(meant.name);
  }

  Recipe& recipe_;
  Diagnostics& diagnostics_;
  ValueReader values_;
  bool fills_ = false;
  /// Keys and tables given in a broken or misspelt way, whose absence is not reported too: "model", "[model].hidden".
  std::set<std::string> excused_;
  /// Sections that a text of ours would fill in, which a fault of the recipe keeps from being found.
  std::set<std::string_view> excused_sections_;
  bool is_guess_ = false;
};

}  // namespace shardc
