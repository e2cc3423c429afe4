// How the sections of a plan are carried out. The defaults are what a run uses; the rest is for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "compiler/base/error_or.h"
#include "compiler/plan/types.h"
#include "runtime/device/guard.h"
#include "runtime/device/launch_graphs.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

struct Execution {
  /// Told of every op and release.
  Guard* guard = nullptr;
  /// Repeats the launches of a step, from its second run on; null if ops launch one by one.
  LaunchGraphs* graphs = nullptr;
  /// SectionStart::order of each section. Looked at when a section begins.
  std::optional<uint64_t> order;
  /// Called after each pass of a loop, with the number of passes that are done, and of all. An error ends the section:
  /// Preempted after what follows the loop, so that the device is left as after any section, others at once.
  std::function<Status(SectionKind, int64_t done, int64_t count)> after_pass;
  /// Put round the kernel of the op at an index of a section, when it is bound.
  std::function<Kernel(SectionKind, size_t, Kernel)> wrap;
};

}  // namespace shardc
