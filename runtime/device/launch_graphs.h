// Launches that a device has recorded once, and repeats together: where a step is short, the host needs longer to
// launch its kernels one by one than the device to run them.
#pragma once

#include <cstddef>

#include "compiler/base/error_or.h"
#include "runtime/device/device.h"

namespace shardc {

/// Graphs of what is enqueued on the compute queue of a rank's device. They end before the device does.
class LaunchGraphs {
 public:
  virtual ~LaunchGraphs() = default;

  /// Begins to record: turns that are enqueued from now on run, and what they launch is kept and does not run.
  virtual auto BeginRecording() -> Status = 0;
  /// Ends what BeginRecording began. Returns the number of the graph.
  virtual auto EndRecording() -> ErrorOr<size_t> = 0;
  /// Enqueues all that a graph keeps. `last`: the last of its turns, for messages.
  virtual auto Launch(size_t graph, const Turns& turns, size_t last) -> Status = 0;
};

}  // namespace shardc
