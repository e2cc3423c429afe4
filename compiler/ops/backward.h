// What a plan's backward is made from: forward ops and their VJPs. The differentiate pass puts it into the plan; the
// verifier makes it again and compares.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// Appends to `result` the ops of `ops` and, among and after those of the forward phase, their backward. Gives every
/// trainable parameter that the loss depends on a gradient, adding values and buffers to `plan`, whose sections are
/// not looked at. Requires: values that are parameters have the role of one.
///   1. walks forward: which values depend on a trainable parameter
///   2. after each chunk of the loss, its backward and that of its logits: they die before those of the next chunk live
///   3. after the last forward op, walks the others backward, calling each op's VJP; contributions to one gradient
///      accumulate in its bytes. What reads the metrics comes last
///   4. what depends on no trainable parameter gets no gradient: ops that would only serve one are left out, and where
///      an op writes one beside others (that of a frozen norm's weight), it goes to workspace that nothing reads
/// Returns why the forward has no such backward, where it has none; `result` is of no use then.
auto EmitBackward(Plan* plan, const std::vector<Op>& ops, std::vector<Op>* result) -> std::optional<std::string>;

}  // namespace shardc
