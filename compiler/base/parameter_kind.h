// The kinds of parameters, from the rows of schemas/parameter_kinds.def: families say the kind of each parameter, and
// schemes of init rules have a rule for each kind.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "compiler/base/enum.h"

namespace shardc {

enum class ParameterKind : uint8_t {
#define KIND(Name, name, doc) Name,
#include "schemas/parameter_kinds.def"
};

template <>
struct EnumNames<ParameterKind> {
  static constexpr auto names = std::to_array<std::string_view>({
#define KIND(Name, name, doc) name,
#include "schemas/parameter_kinds.def"
  });
};

/// What each kind is, in enumerator order.
constexpr auto ParameterKindDocs = std::to_array<std::string_view>({
#define KIND(Name, name, doc) doc,
#include "schemas/parameter_kinds.def"
});

}  // namespace shardc
