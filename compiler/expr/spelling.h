// The spelling of an expression: texts that differ in blanks and in how they write numbers are one text in plans.
#pragma once

#include <string>
#include <string_view>

#include "compiler/expr/expr.h"

namespace shardc {

/// Returns "linear_rope(4)" of " linear_rope( 4.0 )". A text that does not read stays.
auto SpellingOf(std::string_view text, ExprKind kind) -> std::string;

}  // namespace shardc
