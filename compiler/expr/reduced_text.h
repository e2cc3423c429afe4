// What is left of a rule when everything known is put in.
#pragma once

#include <string>

#include "compiler/expr/evaluator.h"

namespace shardc {

/// Returns a text of the language with the same value at every element: known numbers in their shortest form, a `let`
/// for each value that is used more than once, parentheses where the grammar needs them.
/// Requires: the root has no fault.
auto ReducedText(const Evaluator& evaluator) -> std::string;

}  // namespace shardc
