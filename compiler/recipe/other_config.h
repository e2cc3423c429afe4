// The settings of a configuration of another trainer: which a recipe has taken over, and what to say of the others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/recipe/config_tree.h"

namespace shardc {

/// The programs whose configurations are read.
enum class ConfigProgram : uint8_t { TorchtitanToml, TorchtitanJson, KempnerForge };

/// A setting that means the same here: a row CARRIED of schemas/other_configs.def.
struct CarriedRow {
  ConfigProgram program;
  std::string_view theirs;
  std::string_view default_text;
  std::string_view ours;
};

auto CarriedRows() -> std::span<const CarriedRow>;

/// Returns true if the tables know a setting of this program.
auto IsKnownSetting(ConfigProgram program, std::string_view section, std::string_view key) -> bool;

/// The settings of a configuration, by "section.key".
class OtherConfig {
 public:
  OtherConfig(ConfigProgram program, const TomlNode& root);

  auto program() const -> ConfigProgram { return program_; }
  auto Has(std::string_view name) const -> bool { return values_.contains(name); }
  /// Returns the value of the last of these names that the configuration has, as TOML, or the default. Adds that the
  /// others of them, and values of another type than the default's, are not carried over. A default that is empty is a
  /// number. Adds a fault for a number that is not finite.
  auto Take(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string;
  /// Returns a text without its quotes.
  auto TakeText(const std::vector<std::string_view>& names, std::string_view default_text) -> std::string;
  /// Returns a number.
  auto TakeNumber(const std::vector<std::string_view>& names, double default_number) -> double;
  /// Returns a size, a length or a count. Adds a fault for a value below 1.
  auto TakeCount(const std::vector<std::string_view>& names, int64_t default_count) -> int64_t;
  /// Adds that a setting has a meaning that recipes do not have, once each.
  auto Miss(std::string_view name, std::string_view why) -> void;
  /// Adds a reason why no recipe is made.
  auto Refuse(std::string_view name, std::string_view why) -> void;
  /// Returns a line for each setting that was not carried over, has another value than its default, and is not switched
  /// off. Adds a fault for each size, length or batch that no table knows.
  auto NotCarried() -> std::vector<std::string>;
  /// Returns an error with the first fault.
  auto Judge(const std::string& file) const -> Status;

 private:
  /// Returns true if the setting has switches, and all of them are off.
  auto IsSwitchedOff(std::string_view name) const -> bool;
  /// Returns "[section] key = value".
  auto Named(std::string_view name) const -> std::string;

  ConfigProgram program_;
  std::map<std::string, std::string, std::less<>> values_;
  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> missed_;
  std::set<std::string, std::less<>> missed_names_;
  std::vector<std::string> faults_;
};

}  // namespace shardc
