// A tiny plan over host memory, and a binder for it: what a test needs to run one kernel.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "compiler/base/devices.h"
#include "compiler/plan/plan.h"
#include "runtime/kernels/kernel.h"

namespace shardc {

/// What kernels a plan names: its device and its backend.
struct Backend {
  Device device = Device::Cpu;
  KernelSet kernels = KernelSet::Fused;
};

/// Returns every backend that this machine can run; in a program that tests one of them, that one.
auto Backends() -> std::vector<Backend>&;

/// Calls body(backend) for each backend.
template <class Body>
auto ForBackends(const Body& body) -> void {
  for (const Backend& backend : Backends()) {
    SCOPED_TRACE(fmt::format("{} kernels on {}", ToText(backend.kernels), ToText(backend.device)));
    body(backend);
  }
}

/// Calls body(backend, dtype) for each backend and each element type of activations.
template <class Body>
auto ForElementTypes(const Body& body) -> void {
  ForBackends([&](const Backend& backend) {
    for (const DType dtype : {DType::F32, DType::BF16}) {
      SCOPED_TRACE(ToText(dtype));
      body(backend, dtype);
    }
  });
}

/// Calls body(backend, dtype, residual) for each backend and each pair of types of activations and residual stream.
template <class Body>
auto ForResidualTypes(const Body& body) -> void {
  ForElementTypes([&](const Backend& backend, DType dtype) {
    body(backend, dtype, dtype);
    if (dtype != DType::F32) {
      SCOPED_TRACE("residual in f32");
      body(backend, dtype, DType::F32);
    }
  });
}

/// Values each have a buffer of their own, aligned to 64 bytes, between guard bytes; fresh memory is all ones (NaN in
/// any floating type), so reads of what nobody wrote show. Tests read and write memory of the host, whatever the
/// device. A device with memory of its own runs each kernel twice, and both runs give the same bits unless the plan's
/// run.deterministic is false.
class KernelFixture : public Binder {
 public:
  explicit KernelFixture(int64_t rank = 0) : KernelFixture(Backend{}, rank) {}
  explicit KernelFixture(const Backend& backend, int64_t rank = 0);

  /// A value that holds nothing yet.
  auto Add(DType dtype, Dims shape) -> ValueId;
  auto F32(Dims shape, const std::vector<double>& elements) -> ValueId;
  auto BF16(Dims shape, const std::vector<double>& elements) -> ValueId;
  /// F32 or BF16.
  auto Floats(DType dtype, Dims shape, const std::vector<double>& elements) -> ValueId;
  auto F64(const std::vector<double>& elements) -> ValueId;
  auto I32(Dims shape, const std::vector<int32_t>& elements) -> ValueId;
  auto I64(const std::vector<int64_t>& elements) -> ValueId;
  /// A second value on the bytes of `value`.
  auto Over(ValueId value) -> ValueId;
  auto AddScalar(ScalarKind kind, double number) -> ScalarId;

  template <class T>
  auto At(ValueId value) -> std::span<T> {
    return {reinterpret_cast<T*>(MemoryOf(value)), static_cast<size_t>(plan_.values[value].num_elements())};
  }

  /// Gives memory to buffers that were added to the plan by others.
  auto AllocateNewBuffers() -> void;

  /// The elements of a value of any type.
  auto Numbers(ValueId value) -> std::vector<double>;

  auto mutable_plan() -> Plan& { return plan_; }

  /// Binds and runs one op; scratch is made first, if the op names none. An error or a broken guard fails the test.
  auto Run(OpBody body) -> void;
  /// The same, with the kernel's status.
  auto TryRun(OpBody body) -> Status;
  /// Binds an op; scratch is made first, if it names none.
  auto BindWithScratch(OpBody body) -> Kernel;

  auto plan() const -> const Plan& override { return plan_; }
  auto rank() const -> int64_t override { return rank_; }
  auto ViewOf(ValueId value) -> View override;
  auto device() -> RankDevice& override { return *device_; }
  auto communicator() -> Communicator& override;
  auto control() -> RankControl& override;
  auto tokens() -> TokenReader& override;
  auto writer() -> CheckpointWriter& override;
  auto reader() -> CheckpointReader& override;
  auto algorithms() -> std::map<std::string, std::string>* override { return &algorithms_; }

 private:
  struct Memory {
    std::vector<std::byte> bytes;
    size_t begin = 0;
    size_t end = 0;
    /// Offset of all bytes in the arena of a device that copies.
    int64_t offset = 0;
    /// Size of the scratch of such a device, of which the host has the guards alone. The scratch lies before `end`.
    int64_t bytes_of_device = 0;
  };

  auto Allocate(int64_t bytes, int64_t bytes_of_device) -> void;
  auto AddScratch(Bytes bytes) -> ValueId;
  /// Returns scratch of this size, which all ops that take as much share.
  auto ScratchOf(Bytes bytes) -> ValueId;
  auto MemoryOf(ValueId value) -> std::byte*;
  auto GuardsHold() const -> bool;
  /// Returns true if the device has memory of its own: operands are copied there before each run, and back after it.
  auto copies() const -> bool { return FactsOf(plan_.device).family != DeviceFamily::Cpu; }
  template <class Copy>
  auto ForCopies(const Copy& copy) -> Status;
  auto CopyToDevice() -> Status;
  auto CopyFromDevice() -> Status;
  auto PaintScratch() -> Status;
  auto RunOnDevice(const Kernel& kernel, const Moment& moment) -> Status;
  /// Expects the same bits of another run.
  auto RunTwiceOnDevice(const Kernel& kernel, const Moment& moment) -> Status;

  Plan plan_;
  int64_t rank_ = 0;
  /// Index = BufferId.
  std::deque<Memory> memories_;
  /// Bytes used of the arena of a device that copies.
  int64_t used_ = 0;
  HostScratch copy_;
  std::map<Bytes, ValueId> scratches_;
  SharedArenas arenas_;
  std::map<std::string, std::string> algorithms_;
  /// The host's device, which has no arenas. Its scalars are there from the start, since kernels keep a reference.
  std::shared_ptr<RankDevice> device_;
};

/// The same numbers on every machine: roughly normal, of the given spread, each an exact f32.
auto RandomNumbers(int64_t count, uint64_t seed, double spread = 1) -> std::vector<double>;
/// The same, each an exact number of the type.
auto RandomNumbers(DType dtype, int64_t count, uint64_t seed, double spread = 1) -> std::vector<double>;
/// `numbers` in f32 or bf16, each rounded to nearest, ties to even.
auto RoundedTo(DType dtype, std::vector<double> numbers) -> std::vector<double>;
/// Ids in [0, vocabulary).
auto RandomTokens(int64_t count, uint64_t seed, int64_t vocabulary) -> std::vector<int32_t>;

}  // namespace shardc
