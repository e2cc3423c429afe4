// A section as bound calls: made once at load, run as a plain loop.
#pragma once

#include <vector>

#include "runtime/core/execution.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

class Program {
 public:
  /// Binds every op of a section that does something. `binder` and `execution` outlive the program.
  Program(SectionKind section, Binder& binder, const Execution& execution);

  /// Runs the section once.
  /// Errors: those of its ops, with step, op line and recipe line put before them.
  auto Run(int64_t step) -> Status;

 private:
  /// Nothing: an op that only says something; it stays where its events or its release count.
  enum class Control : uint8_t { Call, Nothing, Release, RepeatBegin, RepeatEnd };
  struct BoundOp {
    Control control = Control::Call;
    Kernel call;
    Predicate when;
    /// In the section's list: where this is, for messages.
    int32_t index = 0;
    /// RepeatBegin: how often. RepeatEnd: where its first op is.
    int64_t count = 0;
    size_t body = 0;
    /// In guard mode.
    BufferId released;
    OpTouches touches;
  };
  /// One run of one op, where a loop runs it several times.
  struct Turn {
    size_t op = 0;
    int64_t repeat = 0;
    /// Turns on other streams that it waits for.
    std::vector<size_t> waits;
  };

  auto RunInOrder(Moment moment) -> Status;
  auto RunShuffled(Moment moment, uint64_t seed) -> Status;
  /// All turns of the section in the order of the list.
  auto Unroll() const -> std::vector<Turn>;
  auto RunOp(const BoundOp& bound, const Moment& moment) -> Status;
  auto Call(const BoundOp& bound, const Moment& moment) -> Status;
  auto Context(int32_t index, int64_t step, const Error& error) const -> Error;
  auto OpAt(int32_t index) const -> const Op&;

  SectionKind section_;
  Binder& binder_;
  const Execution& execution_;
  std::vector<BoundOp> ops_;
};

}  // namespace shardc
