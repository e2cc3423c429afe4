// Changes to ops that are already emitted: other operands, and the removal of what nothing uses.
#pragma once

#include <functional>

#include "compiler/ops/ops.h"

namespace shardc {

/// Calls `replace(ValueId&)` for each value the op reads (IN, INOUT, the onto of ACC).
auto ReplaceReads(OpBody& body, const std::function<void(ValueId&)>& replace) -> void;

/// Calls `replace(ValueId&)` for each value the op writes and does not read (OUT, OVER, ACC, SCRATCH).
auto ReplaceWrites(OpBody& body, const std::function<void(ValueId&)>& replace) -> void;

/// Drops values that no op and no sub-vector names and buffers that no value lies in; numbers the rest again, in order.
auto RemoveUnused(Plan& plan) -> void;

}  // namespace shardc
