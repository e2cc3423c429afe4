// The order in which both renderers print.
#pragma once

#include <vector>

#include "compiler/diag/diagnostics.h"

namespace shardc {

/// Returns all diagnostics by source, line and column: those without a source first, and those of a source without a
/// line, such as a section that is missing, after its others. Equals stay as they were added.
auto InPlaceOrder(const Diagnostics& diagnostics) -> std::vector<const Diagnostic*>;

}  // namespace shardc
