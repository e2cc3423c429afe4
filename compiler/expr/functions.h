// The functions of expressions at numbers: what C++ computes, and what distributions take.
#pragma once

#include <optional>
#include <span>

#include "compiler/expr/expr.h"

namespace shardc {

enum class ExprFunction {
#define FUNCTION(Name, name, parameters, domain, doc, error, source) Name,
#include "schemas/init_functions.def"
};

/// Returns the value of a function; nothing outside its domain. The caller refuses results that are not finite.
/// Requires: as many arguments as the row has parameters; all finite.
auto EvaluateFunction(ExprFunction function, std::span<const double> arguments) -> std::optional<double>;

auto IsInDomain(DistributionKind distribution, std::span<const double> arguments) -> bool;

}  // namespace shardc
