// The part of docs/expressions.md that is made from the tables of schemas/.
#pragma once

#include <string>

namespace shardc {

/// Names, functions and schemes, as Markdown.
auto ExprReference() -> std::string;

}  // namespace shardc
