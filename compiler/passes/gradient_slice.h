// Values as long as the slice of a sub-vector that a rank owns, and how gradients come into them.
#pragma once

#include <string_view>

#include "compiler/ops/emitter.h"

namespace shardc {

auto MakeSlice(SubVectorId id, DType dtype, Emitter& emitter, Category category, std::string_view suffix, Arena arena)
    -> ValueId;

/// Makes the slice of the gradient, before its sum over ranks that own copies of it.
auto GradientSlice(SubVectorId id, Emitter& emitter) -> ValueId;

/// Sums whole gradients over the ranks that each own a slice of them, to whom they go as `terms`; the slice.
auto ReduceGradient(SubVectorId id, ValueId full, DType terms, Emitter& emitter) -> ValueId;

}  // namespace shardc
