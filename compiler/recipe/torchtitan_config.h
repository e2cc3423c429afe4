// The settings of a configuration of torchtitan: which a recipe has taken over, and what to say of the others.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/recipe/toml_tree.h"

namespace shardc {

/// The settings of a configuration, by "section.key", as TOML.
class TorchtitanConfig {
 public:
  explicit TorchtitanConfig(const TomlNode& root);

  /// Returns the value of the last of these names that the configuration has, or the default. Adds that the others of
  /// them, and values of another type than the default's, are not carried over. A default that is empty is a number.
  auto Take(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string;
  /// Returns a text without its quotes.
  auto TakeText(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string;
  /// Returns a number.
  auto TakeNumber(const std::vector<std::string_view>& names, double default_number) -> double;
  /// Adds that a setting has a meaning that recipes do not have, once each.
  auto Miss(std::string_view name, std::string_view why) -> void;
  /// Returns a line for each setting that was not carried over and is not switched off.
  auto NotCarried() const -> std::vector<std::string>;

 private:
  /// Returns true if the setting has switches, and all of them are off.
  auto IsSwitchedOff(std::string_view name) const -> bool;
  auto Add(const std::string& path, const TomlNode& node) -> void;

  std::map<std::string, std::string> values_;
  std::set<std::string> taken_;
  std::vector<std::string> missed_;
  std::set<std::string> missed_names_;
};

}  // namespace shardc
