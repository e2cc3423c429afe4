// The words that keys of a recipe take, as enums: one for each set of words in schemas/recipe_values.def. They lie
// below recipe and plan, since a plan holds some of them too. A word that is refused for now has no enumerator.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "compiler/base/enum.h"

namespace shardc {

#define WORDS(Enum) enum class Enum : uint8_t {
#define WORD(Name, word) Name,
#define END_WORDS(Enum) \
  }                     \
  ;
#include "schemas/recipe_values.def"

#define WORDS(Enum)        \
  template <>              \
  struct EnumNames<Enum> { \
    static constexpr auto names = std::to_array<std::string_view>({
#define WORD(Name, word) word,
#define END_WORDS(Enum) \
  });                   \
  }                     \
  ;
#include "schemas/recipe_values.def"

}  // namespace shardc
