#include "compiler/recipe/optimizer_keys.h"

namespace shardc {

auto OwnerOfKey(std::string_view key) -> std::optional<Optimizer> {
#define SETTING(Name, setting) \
  if (key == #setting) {       \
    return Optimizer::Name;    \
  }
#include "schemas/optimizers.def"
  return std::nullopt;
}

auto IsLacked(const Recipe& recipe, std::string_view section, std::string_view key) -> bool {
  const OneOf<Optimizer>& name = *recipe.optimizer.name;
  if (section != "optimizer" || !name.is_accepted()) {
    return false;
  }
  const std::optional<Optimizer> owner = OwnerOfKey(key);
  return owner && *owner != name;
}

}  // namespace shardc
