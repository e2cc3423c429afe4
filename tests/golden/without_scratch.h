// What goldens show of a plan: all but the scratch that kernels work in, whose size is a kernel's to choose. That
// stands in a golden of its own, so that a kernel that is tuned again changes one file.
#pragma once

#include <string>

#include "compiler/plan/text.h"

namespace shardc {

/// The plan with no op's scratch, and with offsets and events as they are then. Buffers and values of scratch stay, of
/// no bytes and used by nothing.
auto WithoutScratch(Plan plan) -> Plan;

/// The text of that plan, without the lines of scratch.
auto PrintWithoutScratch(const Plan& plan, const PrintOptions& options) -> std::string;

/// A line for each op with scratch and each set of operands that it has here: its fields with the operands' types, and
/// the bytes of its scratch.
auto ScratchLines(const Plan& plan) -> std::vector<std::string>;

}  // namespace shardc
