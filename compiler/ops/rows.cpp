// What the rows of schemas/ops.def say of an op besides its fields.
#include "compiler/ops/ops.h"

namespace shardc {

auto DocOf(OpKind kind) -> std::string_view {
  static constexpr std::array<std::string_view, NumOpKinds> docs{
#define OP(Type, mnemonic, differentiable, fields, doc) doc,
#include "schemas/ops.def"
  };
  return docs[static_cast<size_t>(kind)];
}

auto IsDifferentiable(OpKind kind) -> bool {
  constexpr bool NotDifferentiable = false;
  constexpr bool Fused = false;
  constexpr bool Differentiable = true;
  static constexpr std::array<bool, NumOpKinds> flags{
#define OP(Type, mnemonic, differentiable, fields, doc) differentiable,
#include "schemas/ops.def"
  };
  return flags[static_cast<size_t>(kind)];
}

}  // namespace shardc
