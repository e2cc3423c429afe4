// How a kernel meets a plan: at load each op is bound once, to views into the arenas and to the services of its rank;
// a step then enqueues the ops, and each queue calls the kernels of its ops in order.
//
// Kernels come in sets, each a folder and a namespace: those of ops that work on the host, whatever the device is
// (host), those of each family of devices, for all other ops (cpu, cuda), and those to compare with (reference).
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "compiler/ops/ops.h"
#include "compiler/plan/plan.h"
#include "runtime/device/device.h"

namespace shardc {

class Communicator;
class RankControl;
class TokenReader;
class CheckpointWriter;
class CheckpointReader;
struct Drawn;

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

/// Does one op once, when its turn comes on the queue of its stream. A kernel of the CPU has done it on return, one of
/// an accelerator has launched it on Binder::queue(). Ops that can fail for the machine's sake (collectives, files)
/// return an error.
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
  virtual auto control() -> RankControl& = 0;
  virtual auto device() -> RankDevice& = 0;
  /// Of the op that is bound now.
  auto queue() -> Queue& { return device().queue(stream_); }
  auto set_stream(Stream stream) -> void { stream_ = stream; }
  /// As ops read and write them.
  auto scalars() -> ScalarTable& { return device().scalars(); }
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
  /// Returns what a library of the device chose for products, by the text of the product, so that all ops and restarts
  /// of the run compute it alike; null if each op asks by itself.
  virtual auto algorithms() -> std::map<std::string, std::string>* { return nullptr; }

 private:
  Stream stream_ = Stream::Compute;
};

// One file per op and family.
namespace cpu {
#define OP(Type, mnemonic, differentiable, fields, doc) auto Bind(const op::Type& op, Binder& binder)->Kernel;
#include "schemas/ops.def"
}  // namespace cpu
namespace cuda {
#define OP(Type, mnemonic, differentiable, fields, doc) auto Bind(const op::Type& op, Binder& binder)->Kernel;
#include "schemas/ops.def"
}  // namespace cuda

/// Binds any op, to the kernel of the host, of the plan's device, or to compare with. Structural ops (repeat,
/// end_repeat, carry, release) give a kernel that does nothing. Requires: ResolveDevice let the plan pass.
auto BindOp(const OpBody& body, Binder& binder) -> Kernel;

/// Decides plan.device, where it leaves that open, by what this machine has. Once, before ranks start: bits depend on
/// it. Errors: Environment where this machine, or this program, cannot run the device that the plan names.
auto ResolveDevice(Plan& plan) -> Status;

/// Threads that one rank computes with; set once before the first kernel runs.
auto SetComputeThreads(int64_t threads) -> void;

}  // namespace shardc
