// The order in which both renderers print.
#pragma once

#include <vector>

#include "compiler/diag/diagnostics.h"

namespace shardc {

/// All diagnostics by source, line and column, those without a place first; equals stay as they were added.
auto InPlaceOrder(const Diagnostics& diagnostics) -> std::vector<const Diagnostic*>;

}  // namespace shardc
