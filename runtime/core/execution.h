// How the sections of a plan are carried out. The defaults are what a run uses; the rest is for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

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
  /// Put round the kernel of the op at an index of a section, when it is bound.
  std::function<Kernel(SectionKind, size_t, Kernel)> wrap;
};

}  // namespace shardc
