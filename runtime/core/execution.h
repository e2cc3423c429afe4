// How the sections of a plan are carried out. The defaults are what a run uses; the rest is for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "runtime/kernels/kernel.h"
#include "runtime/memory/guard.h"

namespace shardc {

struct Execution {
  /// Told of every op and release.
  Guard* guard = nullptr;
  /// Each section runs in a random order, among those that its streams (first in, first out) and events allow. The same
  /// seed on all ranks gives them the same orders, so that their collectives pair. Looked at when a section begins; set
  /// when it was bound, or events of ops that do nothing (releases) are lost.
  std::optional<uint64_t> shuffle_seed;
  /// Put round the kernel of the op at an index of a section, when it is bound.
  std::function<Kernel(SectionKind, size_t, Kernel)> wrap;
};

}  // namespace shardc
