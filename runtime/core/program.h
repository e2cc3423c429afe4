// A section as bound calls: made once at load. A run enqueues each op on the queue of its stream: wait, call, signal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/execution.h"
#include "runtime/core/rank_binder.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

class Program final : private Turns {
 public:
  /// Binds every op of a section that does something. `binder` and `execution` outlive the program.
  Program(SectionKind section, RankBinder& binder, const Execution& execution);

  /// Runs the section once.
  /// Errors: those of its ops, with step, op line and recipe line put before them.
  auto Run(int64_t step) -> Status;

 private:
  /// Nothing: an op that only says something, and waits or signals. Release: the same, of which the guard is told.
  enum class Control : uint8_t { Call, Nothing, Release, RepeatBegin, RepeatEnd };
  struct BoundOp {
    Control control = Control::Call;
    Kernel call;
    /// The op in the section's list.
    const Op* op = nullptr;
    /// The queue of the op's stream.
    Queue* queue = nullptr;
    /// RepeatBegin: how often. RepeatEnd: where its first op is.
    int64_t count = 0;
    size_t body = 0;
    /// In guard mode.
    BufferId released;
    OpTouches touches;
    /// Index after the ops whose launches are repeated together with this one's; 0 if it is not the first of such ops.
    size_t graph_end = 0;
    /// By pass of the loop round it.
    std::vector<std::optional<size_t>> graphs;
  };
  auto BindOne(const Op& op, size_t index) -> BoundOp;
  /// Finds consecutive ops whose launches are the same in each step.
  auto FindGraphs() -> void;
  /// Enqueues the ops of a graph, which is recorded first if that has not been done.
  auto EnqueueGraph(size_t begin, const Moment& moment) -> Status;
  /// Enqueues all ops in the order of the list, loops unrolled.
  auto EnqueueAll(Moment moment) -> Status;
  /// Enqueues one op, which its stream has reached in the list.
  auto RunOp(size_t at, const Moment& moment) -> Status;
  /// Enqueues the waits of an op, and its signal.
  auto WaitBefore(const BoundOp& bound, const Moment& moment) -> Status;
  auto SignalAfter(const BoundOp& bound, const Moment& moment) -> Status;
  /// Runs the op when its turn has come.
  auto RunTurn(size_t at, const Moment& moment) -> Status override;
  auto NameOfTurn(size_t at) const -> std::string override;
  /// Calls the kernel between looks of the guard, if there is one, and waits for its end on the device.
  auto Call(const BoundOp& bound, const Moment& moment) -> Status;
  auto IndexOf(const BoundOp& bound) const -> int64_t;
  auto Context(const BoundOp& bound, int64_t step, const Error& error) const -> Error;

  SectionKind section_;
  RankBinder& binder_;
  const Execution& execution_;
  std::vector<BoundOp> ops_;
  /// True once the section has run, so that libraries have loaded what they launch.
  bool has_run_ = false;
};

}  // namespace shardc
