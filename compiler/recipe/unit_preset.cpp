#include "compiler/recipe/unit_preset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace shardc {

constexpr int64_t MostBlocks = 65536;
constexpr int64_t MostSize = 1048576;

/// Takes `prefix` off the front of `text`.
static auto Take(std::string_view& text, std::string_view prefix) -> bool {
  if (!text.starts_with(prefix)) {
    return false;
  }
  text.remove_prefix(prefix.size());
  return true;
}

/// Takes a whole number from 1 to `most` off the front of `text`.
static auto TakeNumber(std::string_view& text, int64_t most) -> std::optional<int64_t> {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1 || number > most) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

static auto ParseSize(std::string_view text) -> std::optional<Bytes> {
  struct Scale {
    std::string_view word;
    int shift;
  };
  constexpr std::array scales{Scale{"KiB", 10}, Scale{"MiB", 20}, Scale{"GiB", 30}};
  const auto number = TakeNumber(text, MostSize);
  Take(text, " ");
  const auto* scale = std::find_if(scales.begin(), scales.end(), [&](const Scale& s) { return s.word == text; });
  if (!number || scale == scales.end()) {
    return std::nullopt;
  }
  return Bytes{*number << scale->shift};
}

auto ParseUnitPreset(std::string_view text) -> std::optional<UnitPreset> {
  if (text == "block") {
    return UnitPreset{};
  }
  if (text == "torchtitan") {
    return UnitPreset{.kind = UnitPreset::Kind::Torchtitan, .num_blocks = 1, .most = {}};
  }
  if (Take(text, "blocks:")) {
    const auto number = TakeNumber(text, MostBlocks);
    if (number && text.empty()) {
      return UnitPreset{.kind = UnitPreset::Kind::Blocks, .num_blocks = *number, .most = {}};
    }
  } else if (Take(text, "size:")) {
    if (const auto most = ParseSize(text)) {
      return UnitPreset{.kind = UnitPreset::Kind::Size, .num_blocks = 1, .most = *most};
    }
  }
  return std::nullopt;
}

auto UnitNameOf(const ShardSection& shard, size_t index) -> std::string {
  const UnitRule& rule = shard.unit[index];
  return rule.name.is_set ? *rule.name : fmt::format("unit{}", index);
}

auto IsUnitName(std::string_view name) -> bool {
  constexpr size_t Longest = 64;
  return !name.empty() && name.size() <= Longest && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
  });
}

}  // namespace shardc
