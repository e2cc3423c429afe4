// Reads one value of a recipe by the type of its key. Whether a value of the right type is a sensible one,
// compiler/check judges.
#pragma once

#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/keys/sections.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/recipe.h"
#include "compiler/recipe/toml_tree.h"
#include "compiler/recipe/type_help.h"
#include "compiler/recipe/unknown_keys.h"

namespace shardc {

class ValueReader {
 public:
  explicit ValueReader(Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

  /// False, and the value as it was, if the node is none for the key; that is reported.
  template <class T>
  auto ReadLeaf(const KeyInfo& key, const TomlNode& node, T& value) -> bool {
    T read = value;
    const Outcome outcome = ReadValue(key, node, read);
    if (outcome == Outcome::WrongType) {
      auto builder =
          diagnostics_.Build(node.at, DiagnosticKind::WrongType, key.name, Describe(node), DescribeType(key.type));
      builder.Help(TypeHelp(key, node)).Emit();
    }
    if (outcome == Outcome::Read) {
      value = std::move(read);
    }
    return outcome == Outcome::Read;
  }

 private:
  /// Reported: the value is bad in another way than by its type, and that has been said.
  enum class Outcome { Read, WrongType, Reported };

  static auto When(bool is_read) -> Outcome { return is_read ? Outcome::Read : Outcome::WrongType; }

  auto ReadValue(const KeyInfo&, const TomlNode& node, int64_t& value) -> Outcome {
    value = node.integer;
    return When(node.kind == TomlNode::Kind::Int);
  }

  auto ReadValue(const KeyInfo& key, const TomlNode& node, double& value) -> Outcome {
    if (node.kind != TomlNode::Kind::Int && node.kind != TomlNode::Kind::Real) {
      return Outcome::WrongType;
    }
    value = node.kind == TomlNode::Kind::Int ? static_cast<double>(node.integer) : node.real;
    if (!std::isfinite(value)) {
      diagnostics_.Report(node.at, DiagnosticKind::OutOfRange, key.name, fmt::format("{}", value), "finite numbers");
      return Outcome::Reported;
    }
    return Outcome::Read;
  }

  auto ReadValue(const KeyInfo&, const TomlNode& node, bool& value) -> Outcome {
    value = node.boolean;
    return When(node.kind == TomlNode::Kind::Bool);
  }

  auto ReadValue(const KeyInfo&, const TomlNode& node, std::string& value) -> Outcome {
    const bool is_text = node.kind == TomlNode::Kind::Text;
    const bool is_bare = !node.raw.empty() && node.kind != TomlNode::Kind::Array && node.kind != TomlNode::Kind::Table;
    value = is_text ? node.text : node.raw;
    return When(is_text || is_bare);
  }

  template <class E>
  auto ReadValue(const KeyInfo& key, const TomlNode& node, OneOf<E>& value) -> Outcome {
    std::string text;
    const Outcome outcome = ReadValue(key, node, text);
    value = OneOf<E>(std::move(text));
    return outcome;
  }

  auto ReadValue(const KeyInfo& key, const TomlNode& node, Formula& value) -> Outcome {
    if (node.kind == TomlNode::Kind::Text) {
      value.text = node.text;
      return Outcome::Read;
    }
    double number = 0;
    const Outcome outcome = ReadValue(key, node, number);
    value.text = node.kind == TomlNode::Kind::Int ? fmt::format("{}", node.integer) : fmt::format("{}", number);
    return outcome;
  }

  auto ReadValue(const KeyInfo&, const TomlNode& node, ByteSize& value) -> Outcome {
    const bool is_whole = node.kind == TomlNode::Kind::Int;
    value.text = is_whole ? fmt::format("{}", node.integer) : node.text;
    return When(is_whole || node.kind == TomlNode::Kind::Text);
  }

  auto ReadValue(const KeyInfo&, const TomlNode& node, Condition& value) -> Outcome {
    if (node.kind == TomlNode::Kind::Bool) {
      value.text = node.boolean ? "true" : "false";
      return Outcome::Read;
    }
    value.text = node.text;
    return When(node.kind == TomlNode::Kind::Text);
  }

  /// The one value that may be a table.
  auto ReadValue(const KeyInfo& key, const TomlNode& node, FirstStart& value) -> Outcome {
    value = {};
    if (node.kind != TomlNode::Kind::Table) {
      return ReadValue(key, node, value.word);
    }
    const std::string where = fmt::format("`{}`", key.name);
    bool is_path_meant = false;
    for (const TomlEntry& entry : node.entries) {
      const bool found = ReadMember(key, entry, "seed", "Text", value.seed) ||
                         ReadMember(key, entry, "continue", "Text", value.continued) ||
                         ReadMember(key, entry, "adapter", "Text", value.adapter) ||
                         ReadMember(key, entry, "reset", "Texts", value.reset) ||
                         ReadMember(key, entry, "missing", "Texts", value.missing) ||
                         ReadMember(key, entry, "unused", "Texts", value.unused);
      if (!found) {
        const auto meant =
            ReportUnknownKey(entry, where, {"seed", "continue", "adapter", "reset", "missing", "unused"}, diagnostics_)
                .name;
        is_path_meant |= meant == "seed" || meant == "continue";
      }
    }
    if (!value.from().is_set && !is_path_meant) {
      diagnostics_.Report(node.at, DiagnosticKind::MissingKey, "seed", where,
                          "the checkpoint to begin from; or `continue`, which keeps its moments too");
    }
    // What is wrong within has been said; without the path nothing can be said of the whole.
    return value.from().is_set ? Outcome::Read : Outcome::Reported;
  }

  /// True if the entry is this member of a table.
  template <class T>
  auto ReadMember(const KeyInfo& key, const TomlEntry& entry, std::string_view name, std::string_view type,
                  Located<T>& member) -> bool {
    if (entry.key != name) {
      return false;
    }
    member.at = entry.value.at;
    member.is_set = true;
    KeyInfo of_member = key;
    of_member.name = name;
    if (ReadValue(of_member, entry.value, member.value) == Outcome::WrongType) {
      diagnostics_.Report(entry.value.at, DiagnosticKind::WrongType, name, Describe(entry.value), DescribeType(type));
    }
    return true;
  }

  template <class T>
  auto ReadValue(const KeyInfo& key, const TomlNode& node, std::vector<T>& value) -> Outcome {
    value.clear();
    if (node.kind != TomlNode::Kind::Array) {
      return Outcome::WrongType;
    }
    Outcome worst = Outcome::Read;
    for (const TomlNode& item : node.items) {
      T element{};
      const Outcome outcome = ReadValue(key, item, element);
      if (outcome == Outcome::WrongType) {
        diagnostics_.Report(item.at, DiagnosticKind::WrongType, key.name, fmt::format("a list with {}", Describe(item)),
                            DescribeType(key.type));
      }
      worst = outcome == Outcome::Read ? worst : Outcome::Reported;
      value.push_back(std::move(element));
    }
    return worst;
  }

  Diagnostics& diagnostics_;
};

}  // namespace shardc
