// A key of the recipe as a small number, for origins: a plan has one an op. The table is that of recipe_keys.def.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

class OriginKey {
 public:
  constexpr OriginKey() = default;
  /// Takes "shard.units"; a list by itself is a key too, "shard.unit". A text that recipes have no key for does not
  /// compile.
  consteval OriginKey(const char* text) : OriginKey(*Find(text)) {}

  static constexpr auto Find(std::string_view text) -> std::optional<OriginKey> {
    for (size_t i = 1; i < Names.size(); ++i) {
      if (Names[i] == text) {
        OriginKey key;
        key.index_ = static_cast<uint16_t>(i);
        return key;
      }
    }
    return std::nullopt;
  }

  constexpr auto empty() const -> bool { return index_ == 0; }
  /// Returns "" if there is no key.
  constexpr auto text() const -> std::string_view { return Names[index_]; }
  friend constexpr auto operator==(const OriginKey&, const OriginKey&) -> bool = default;

 private:
#define KEY(section, name, Type, default_, doc) #section "." #name,
#define LIST(section, name, Struct, doc) #section "." #name,
#define ITEM(section, list, name, Type, default_, doc) #section "." #list "." #name,
  static constexpr auto Names = std::to_array<std::string_view>({
      "",
#include "schemas/recipe_keys.def"
  });

  uint16_t index_ = 0;
};

}  // namespace shardc
