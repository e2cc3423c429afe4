// How a kernel meets a plan: at load each op is bound once, to views into the arenas and to the services of its rank;
// a step then calls the bound kernels in order. Declared from the rows of schemas/ops.def, one file an op and backend.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "compiler/ops/ops.h"
#include "compiler/plan/plan.h"

namespace shardc {

class Communicator;
class TokenReader;
class CheckpointWriter;
class CheckpointReader;
class ScalarTable;
struct Drawn;

/// When a bound kernel runs.
struct Moment {
  int64_t step = 0;
  /// Index of the innermost repeat.
  int64_t repeat = 0;
};

/// A value resolved to memory of this rank.
struct View {
  std::byte* base = nullptr;
  /// Added per repeat index.
  int64_t bytes_per_repeat = 0;
  DType dtype = DType::F32;
  Dims shape;
  /// Where the peers find theirs: the same arena and offset.
  Arena arena = Arena::Transient;
  int64_t arena_offset = 0;

  auto num_elements() const -> int64_t { return NumElements(shape); }
  template <class T>
  auto At(const Moment& moment) const -> T* {
    return reinterpret_cast<T*>(base + bytes_per_repeat * moment.repeat);
  }
};

/// Runs one op once. Ops that can fail for the machine's sake (collectives, files) return an error.
using Kernel = std::function<Status(const Moment&)>;

/// What an op may reach while it is bound. One per rank.
class Binder {
 public:
  virtual ~Binder() = default;
  virtual auto plan() const -> const Plan& = 0;
  virtual auto rank() const -> int64_t = 0;
  /// The view of a value. Requires: its buffer has an offset.
  virtual auto ViewOf(ValueId value) -> View = 0;
  virtual auto communicator() -> Communicator& = 0;
  virtual auto scalars() -> ScalarTable& = 0;
  virtual auto tokens() -> TokenReader& = 0;
  virtual auto writer() -> CheckpointWriter& = 0;
  virtual auto reader() -> CheckpointReader& = 0;
  /// The checkpoint that parameters begin from, while a first start reads it. Null: there is none, or no more.
  virtual auto seed() -> CheckpointReader* { return nullptr; }
  /// Told of each run of a section that ended well.
  virtual auto CountRun(SectionKind section) -> void { static_cast<void>(section); }
  /// Where initialize ops count what they draw of a parameter. Null: nobody asks.
  virtual auto DrawnOf(ParameterId parameter) -> Drawn* {
    static_cast<void>(parameter);
    return nullptr;
  }
};

/// The host's numbers of one rank: index = ScalarId.
class ScalarTable {
 public:
  explicit ScalarTable(size_t size) : values_(size, 0.0) {}
  auto operator[](ScalarId id) -> double& { return values_[static_cast<size_t>(id.index)]; }
  auto operator[](ScalarId id) const -> double { return values_[static_cast<size_t>(id.index)]; }
  /// Set before a step if the job's stop flag is up; `control` makes all ranks agree.
  auto RequestStop() -> void { stop_requested_ = true; }
  auto stop_requested() const -> bool { return stop_requested_; }

 private:
  std::vector<double> values_;
  bool stop_requested_ = false;
};

#define OP(Type, mnemonic, differentiable, fields, doc) auto Bind(const op::Type& op, Binder& binder)->Kernel;
#include "schemas/ops.def"

/// Binds any op. Structural ops (repeat, end_repeat, carry, release) give a kernel that does nothing.
auto BindOp(const OpBody& body, Binder& binder) -> Kernel;

/// Decides plan.device, where it leaves that open, by what this machine has. Once, before ranks start: bits depend on
/// it. Errors: Environment where this machine cannot run the device that the plan names.
auto ResolveDevice(Plan& plan) -> Status;

/// Threads that one rank computes with; set once before the first kernel runs.
auto SetComputeThreads(int64_t threads) -> void;

}  // namespace shardc
