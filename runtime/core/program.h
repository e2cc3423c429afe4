// A section as bound calls: made once at load, run as a plain loop.
#pragma once

#include <vector>

#include "runtime/kernels/kernel.h"

namespace shardc {

class Program {
 public:
  /// Binds every op of a section that does something. `binder` outlives the program.
  Program(SectionKind section, Binder& binder);

  /// Runs the section once.
  /// Errors: those of its ops, with step, op line and recipe line put before them.
  auto Run(int64_t step) -> Status;

 private:
  enum class Control : uint8_t { Call, RepeatBegin, RepeatEnd };
  struct BoundOp {
    Control control = Control::Call;
    Kernel call;
    Predicate when;
    /// In the section's list: where this is, for messages.
    int32_t index = 0;
    /// RepeatBegin: how often. RepeatEnd: where its first op is.
    int64_t count = 0;
    size_t body = 0;
  };

  auto Context(const BoundOp& bound, int64_t step, const Error& error) const -> Error;

  SectionKind section_;
  Binder& binder_;
  std::vector<BoundOp> ops_;
};

}  // namespace shardc
