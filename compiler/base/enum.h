// Enumerations with spelled names: specialise EnumNames<E> once, in enumerator order; text both ways comes from it.
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace shardc {

/// `static constexpr std::array<std::string_view, N> names{...}` in enumerator order.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires {
  EnumNames<E>::names;
};

template <NamedEnum E>
constexpr auto ToText(E value) -> std::string_view {
  return EnumNames<E>::names[static_cast<size_t>(value)];
}

template <NamedEnum E>
constexpr auto FromText(std::string_view text) -> std::optional<E> {
  for (size_t i = 0; i < EnumNames<E>::names.size(); ++i) {
    if (EnumNames<E>::names[i] == text) {
      return static_cast<E>(i);
    }
  }
  return std::nullopt;
}

template <NamedEnum E>
constexpr auto CountOf() -> size_t {
  return EnumNames<E>::names.size();
}

}  // namespace shardc
