// The commands with their options as data, from the same declarations that parse command lines: what completion and the
// manual page are made from.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace shardc {

struct OptionRow {
  /// "--output"; empty of a positional one.
  std::string long_name;
  /// "-o", or empty.
  std::string short_name;
  /// What its value is called: "FILE"; of a positional one, its own name. Empty of a flag.
  std::string metavar;
  /// The words that it takes, where it takes a few.
  std::vector<std::string> words;
  std::string doc;
  bool is_required = false;
  /// True if it may be given several times, with one value each.
  bool is_repeated = false;

  auto is_flag() const -> bool { return metavar.empty(); }
  auto is_positional() const -> bool { return long_name.empty(); }
};

struct CommandRow {
  std::string_view name;
  std::string_view doc;
  std::string_view examples;
  std::vector<OptionRow> options;
};

auto CommandTable() -> std::vector<CommandRow>;

enum class Shell { Bash, Zsh, Fish };
/// A script that completes commands, options, their words, recipe keys after --set with their words, and presets.
auto CompletionScript(Shell shell) -> std::string;

/// shardc.1.
auto ManualPage() -> std::string;

/// A path of a recipe key with the words that `--set PATH=` may be completed by; none for other values.
struct SetKey {
  std::string path;
  std::vector<std::string> words;
};
auto SetKeys() -> std::vector<SetKey>;

}  // namespace shardc
