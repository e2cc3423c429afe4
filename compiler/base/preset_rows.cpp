#include "compiler/base/preset_rows.h"

#include <algorithm>
#include <array>
#include <utility>

namespace shardc {

auto PresetRows() -> std::span<const PresetRow> {
  static constexpr auto Rows = std::to_array<PresetRow>({
#define PRESET(Name, name, source, longest, lines) {ModelPreset::Name, name, source, longest, lines},
#include "schemas/presets.def"
  });
  return Rows;
}

auto PresetNamed(std::string_view name) -> const PresetRow* {
  for (const PresetRow& row : PresetRows()) {
    if (row.name == name) {
      return &row;
    }
  }
  return nullptr;
}

auto KeysOf(const PresetRow& row) -> std::vector<PresetKey> {
  std::vector<PresetKey> keys;
  std::string section;
  for (std::string_view rest = row.lines; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.starts_with('[')) {
      section = line.substr(1, line.size() - 2);
      continue;
    }
    const size_t equals = line.find(" = ");
    keys.push_back({section + "." + std::string(line.substr(0, equals)), std::string(line.substr(equals + 3))});
  }
  return keys;
}

auto ValueIn(const PresetRow& row, std::string_view path) -> std::string {
  for (PresetKey& key : KeysOf(row)) {
    if (key.path == path) {
      return std::move(key.value);
    }
  }
  return "";
}

auto AssumedRows() -> std::span<const AssumedRow> {
  static constexpr auto Rows = std::to_array<AssumedRow>({
#define ASSUMED(section, key, value, why) {#section, #key, value, why},
#include "schemas/presets.def"
  });
  return Rows;
}

}  // namespace shardc
