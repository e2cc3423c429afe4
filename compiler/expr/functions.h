// What the functions of expressions compute; declared from the rows of schemas/init_functions.def, so that a row
// without a definition fails at link, naming it.
#pragma once

#include <optional>
#include <span>

namespace shardc::expr_functions {

/// As many as the row has parameters; all finite.
using Arguments = std::span<const double>;

/// Of a function, its value, or nothing outside its domain; the caller refuses results that are not finite.
#define FUNCTION(Name, name, parameters, domain, doc, error, source) \
  auto Name(Arguments arguments)->std::optional<double>;
/// Of a distribution, whether the arguments are in its domain.
#define DISTRIBUTION(Name, name, parameters, domain, doc, source) auto Name(Arguments arguments)->bool;
#include "schemas/init_functions.def"

}  // namespace shardc::expr_functions
