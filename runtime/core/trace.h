// What the ops of chosen steps took, as a file in Chrome's trace format, which chrome://tracing and Perfetto draw: a
// process per rank, a lane per stream, a lane "step" with the steps, and a lane "end of step".
//
// On the CPU one thread of a rank runs the ops of all streams in turn. So the time of an op lasts from the end of the
// op before it, and what hands the op over counts to the op: the times of a step's ops and of what lies around them
// (lane "end of step") add up to the step.
//
// On a device with a clock of its own that thread only enqueues the ops: these times are in the lane "enqueue". The
// lanes of streams have the times at which the device ran the ops, and gaps where it ran none.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "compiler/base/step_range.h"
#include "runtime/control/rank_control.h"
#include "runtime/device/device.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// The trace that a launch was asked for.
struct TraceRequest {
  std::string path;
  StepRange steps;
  /// That a rank keeps; the rest is cut.
  size_t most_events = 0;
};

class Trace {
 public:
  /// Starts a trace of some steps. Requires: a path; plan, control and device outlive the trace.
  Trace(const Plan* plan, RankControl* control, RankDevice* device, const TraceRequest& request);

  /// Wraps the kernel of an op when it is bound.
  auto Wrap(SectionKind section, size_t op_index, Kernel kernel) -> Kernel;

  /// Begins a step, before it runs, and ends it. `step`: its number. Collective at the first step that is traced.
  auto BeginStep(int64_t step) -> Status;
  auto EndStep(int64_t step) -> Status;
  /// Returns true if all steps to trace have run, and the file is not written yet.
  auto IsDue(int64_t step) const -> bool { return step >= request_.steps.last && !is_written_; }
  auto is_written() const -> bool { return is_written_; }

  /// Writes the file, once. Collective. What rank 0 tells of it: where it lies, or why not; a trace that cannot be
  /// written ends no run. Errors: of the other ranks.
  auto Write() -> ErrorOr<std::string>;

 private:
  using Clock = std::chrono::steady_clock;

  struct Event {
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int64_t step = 0;
    int64_t repeat = 0;
    /// Number of the stream of an op, or a lane of the host.
    int64_t lane = 0;
    int64_t op_index = 0;
    SectionKind section = SectionKind::Step;
  };
  static constexpr int64_t StepLane = 1000;
  static constexpr int64_t EnqueueLane = 1001;
  /// Has what lies before the first op of a step and after its last.
  static constexpr int64_t EndLane = 1002;
  static constexpr size_t MaxPartBytes = size_t{1} << 32;

  auto Now() const -> int64_t;
  auto Add(const Event& event) -> void;
  auto LineOf(const Event& event) const -> std::string;
  /// Returns the lines that name the lanes, and the events, each ended by ",\n".
  auto Text() const -> std::string;
  /// Returns the steps that are whole in the trace, "steps 5 to 8", and why others that were asked for are not.
  auto StepsText() const -> std::string;
  /// Returns the first and the last step that is whole in the trace; nothing if no step is.
  auto StepsTraced() const -> std::optional<StepRange>;
  auto PartPath(int64_t rank) const -> std::string;
  /// Joins the parts of all ranks, on rank 0.
  auto Join(const std::vector<int32_t>& written) const -> Status;

  const Plan& plan_;
  RankControl& control_;
  /// Null if the host's clock times ops.
  DeviceClock* clock_;
  TraceRequest request_;
  std::vector<Event> events_;
  /// Ops of this step on the device, whose times are not read yet. Two marks of the clock belong to each.
  std::vector<Event> enqueued_;
  /// Time at which the trace begins, by the clock of this process.
  int64_t base_ns_ = -1;
  int64_t last_ns_ = 0;
  int64_t step_ns_ = 0;
  int64_t step_ = 0;
  bool is_tracing_ = false;
  bool is_cut_ = false;
  bool is_written_ = false;
};

}  // namespace shardc
