#include "compiler/base/family_keys.h"

#include <algorithm>

namespace shardc {

namespace {

struct KeysRow {
  Family family;
  /// "layers, hidden".
  std::string_view keys;
};

// Two steps, so that lists are put in before the keys become a text.
#define KEYS_AS_TEXT(...) #__VA_ARGS__
constexpr auto KeysRows = std::to_array<KeysRow>({
#define FAMILY_KEYS(Name, ...) {Family::Name, KEYS_AS_TEXT(__VA_ARGS__)},
#include "schemas/families.def"
});
#undef KEYS_AS_TEXT

}  // namespace

auto KeysOf(Family family) -> std::vector<std::string_view> {
  std::vector<std::string_view> keys;
  for (const KeysRow& row : KeysRows) {
    std::string_view rest = row.family == family ? row.keys : "";
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(','), rest.size());
      keys.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 2, rest.size()));
    }
  }
  return keys;
}

auto HasKey(Family family, std::string_view key) -> bool {
  const std::vector<std::string_view> keys = KeysOf(family);
  return std::ranges::find(keys, key) != keys.end();
}

auto HasSize(Family family, std::string_view key) -> bool {
  return HasKey(family, key) || key == "kv_heads" || key == "head_dim";
}

}  // namespace shardc
