// Operands of the CPU's kernels, and the loops of the plan's device, which have one instance for each element type
// (loops/loops.def).
#pragma once

#include "runtime/kernels/machine/device.h"
#include "runtime/kernels/operand.h"
