// The memory and the queues of one rank.
//
// A program enqueues each op on the queue of the op's stream, between the events that the op waits for and the event
// that the op signals. When the op's turn comes, the queue calls the program back, which calls the op's kernel. A CPU
// kernel computes in that call; a kernel of an accelerator launches there, and the accelerator keeps the order.
//
// Only runtime/device/<x>, runtime/kernels/<x> and runtime/comm/<x> know which device this is. Nobody else touches
// memory of an arena but by Read and Write: on the CPU they give the memory itself, on other devices a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/copied_pieces.h"
#include "compiler/base/error_or.h"
#include "compiler/base/timeout.h"
#include "compiler/plan/plan.h"
#include "runtime/device/scalar_table.h"
#include "runtime/memory/arenas.h"

namespace shardc {

/// When a bound op runs.
struct Moment {
  int64_t step = 0;
  /// Index of the innermost repeat.
  int64_t repeat = 0;
};

/// Memory of the host that stands in for memory of a device which the host cannot reach.
class HostScratch {
 public:
  /// Returns at least `bytes`, aligned for every element type. They are valid until the next call, whatever they held
  /// before.
  auto Reserve(int64_t bytes) -> std::byte* {
    if (static_cast<int64_t>(bytes_.size()) < bytes) {
      bytes_.resize(static_cast<size_t>(bytes));
    }
    return bytes_.data();
  }

 private:
  std::vector<std::byte> bytes_;
};

class HostMember;

/// Who enqueues ops, and runs each when its turn comes.
class Turns {
 public:
  /// Runs the op with this index at this moment. Called once for each Enqueue.
  virtual auto RunTurn(size_t index, const Moment& moment) -> Status = 0;
  /// Returns the op with this index as messages name it: "op 12 matmul".
  virtual auto NameOfTurn(size_t index) const -> std::string = 0;

 protected:
  ~Turns() = default;
};

/// First in, first out. Queues differ in how fast they are, and only events order one queue after another.
class Queue {
 public:
  virtual ~Queue() = default;

  /// `turns` runs the op after everything that was enqueued here before. Requires: `turns` lives until the section
  /// ends. Errors: those of the turn, here or from Device::EndSection, if the turn comes later.
  virtual auto Enqueue(Turns& turns, size_t index, const Moment& moment) -> Status = 0;
  /// What is enqueued here from now on runs after what was enqueued before the event's last Signal.
  /// Errors: InternalFault if the event was not signalled since the section began: such a wait would never end.
  virtual auto Wait(EventId event) -> Status = 0;
  virtual auto Signal(EventId event) -> Status = 0;

  /// What lies in memory of the device after all that was enqueued here so far. The result is valid until that memory
  /// is written, or `scratch` is used again. It is for reading alone: a change may reach the device or not.
  virtual auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> = 0;
  /// Reads in pieces of PieceBytes at most. Calls function(piece, begin, size), which returns a Status, with each.
  template <class Function>
  auto ReadInPieces(const std::byte* from, int64_t bytes, HostScratch& scratch, const Function& function) -> Status {
    return ForEachPiece(bytes, [&](int64_t begin, int64_t size) -> Status {
      const auto piece = Read(from + begin, size, scratch);
      return piece ? function(*piece, begin, size) : Status(piece.error());
    });
  }
  /// Memory of the host in which the caller puts what EndWrite writes to `to`. It may hold anything before that, so the
  /// caller fills all of it.
  virtual auto BeginWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> std::byte* = 0;
  virtual auto EndWrite(std::byte* to, int64_t bytes, HostScratch& scratch) -> Status = 0;
};

/// Returns the error of a wait that would never end.
inline auto NeverSignalled(EventId event) -> Error {
  return Fail(ExitCode::InternalFault, "waits for event e{}, which nothing has signalled in this section", event.index);
}

/// Memory of a device that has its own, by its driver.
struct DeviceMemory {
  Bytes total;
  /// By whoever uses the device.
  Bytes taken;
};

/// One run of a section.
struct SectionStart {
  SectionKind section = SectionKind::Step;
  int64_t step = 0;
  /// In which of the legal orders a device that shuffles runs the section; without a number it runs the section in the
  /// order of the list, as the other devices do. The same number on all ranks gives them the same order, so that their
  /// collectives pair.
  std::optional<uint64_t> order;
};

/// Work that a rank has under way on its device beside the queues.
struct LookBeside {
  /// Fails if that has failed. Asked while the rank waits for its device, whose error it is then.
  std::function<Status()> look;
  /// Returns what the device may wait for if it gets no further, as the end of a message; empty if it is not known.
  std::function<std::string()> hint;
};

/// Clock of a device on which ops run later than their turns do.
class DeviceClock {
 public:
  virtual ~DeviceClock() = default;

  /// Begins again, without marks. Requires: all queues are empty.
  virtual auto Start() -> Status = 0;
  /// Leaves the next mark in the queue of a stream.
  virtual auto Leave(Stream stream) -> Status = 0;
  /// Returns the time at which the device came to each mark, in the order in which they were left: nanoseconds by the
  /// host's steady clock. Requires: all queues are empty.
  virtual auto Read() -> ErrorOr<std::vector<int64_t>> = 0;
};

/// (A plan's `Device` is a kind of device; this is the one that a rank has.)
class RankDevice {
 public:
  virtual ~RankDevice() = default;

  /// First byte of an arena of this rank; null if the arena is empty.
  virtual auto Base(Arena arena) const -> std::byte* = 0;
  virtual auto queue(Stream stream) -> Queue& = 0;
  /// The scalars as ops read and write them. The host reads its own table, which sections hand over.
  virtual auto scalars() -> ScalarTable& = 0;

  /// Takes over the host's scalars. Requires: the section before this one has ended, or has failed.
  virtual auto BeginSection(const SectionStart& start, const ScalarTable& host) -> Status = 0;
  /// Waits until all queues are empty, then gives the scalars to the host. Errors: those of turns that came only now.
  virtual auto EndSection(ScalarTable& host) -> Status = 0;

  /// Waits until all that was enqueued is over, and tells what kernels found meanwhile. Nothing on a device where an op
  /// is over when its turn is. A section that ends does the same.
  virtual auto Finish() -> Status { return Success{}; }
  /// Takes what the rank has under way beside the queues. Does nothing on a device where an op is over when its turn
  /// is.
  virtual auto LookAlso(const LookBeside& beside) -> void { static_cast<void>(beside); }
  /// Returns true if the device does nothing more for this process, or may never come to an end. What libraries have
  /// there is then left as it is: they would wait for the device.
  virtual auto is_lost() const -> bool { return false; }

  /// Returns the clock of the device; null where an op is over when its turn is, so that the host's clock times it.
  virtual auto clock() -> DeviceClock* { return nullptr; }

  /// Planned bytes against pages touched, one row for each arena, in enumerator order.
  virtual auto MeasureUse() const -> std::vector<ArenaUse> = 0;
  /// Returns the address of the device on PCI, "0000:18:00.0"; empty if it has none of its own.
  virtual auto pci_address() const -> std::string { return ""; }
  /// Returns the memory of the device; nothing if the arenas are in memory of the host.
  virtual auto MeasureMemory() const -> std::optional<DeviceMemory> { return std::nullopt; }

  /// Between sections, when all queues are empty and one is as good as another.
  auto Read(const std::byte* from, int64_t bytes, HostScratch& scratch) -> ErrorOr<const std::byte*> {
    return queue(Stream::Compute).Read(from, bytes, scratch);
  }
};

/// What a rank needs to make its device.
struct DevicePlace {
  /// Outlives the device.
  const SharedArenas* arenas = nullptr;
  int64_t rank = 0;
  /// Counted from the first rank of the machine.
  int64_t local_rank = 0;
  /// The rank as its host knows it. Null where it is alone.
  HostMember* member = nullptr;
  /// Fails if another rank has failed. A rank calls it while it waits for a device that has memory of its own. Empty if
  /// there are no others.
  std::function<Status()> look;
  /// The time within which such a device gets on.
  Seconds timeout = DefaultTimeout;
  /// For tests. On a CPU: a device that runs sections in random legal orders (SectionStart::order), and of which the
  /// host reads and writes copies. On a GPU: one whose streams lag at random.
  bool shuffles = false;
};

/// Returns the sizes of the plan's arenas in memory of the host, where the launcher maps them before there are ranks:
/// all of a CPU, none of a device with memory of its own.
auto HostArenas(const Plan& plan) -> ArenaSizes;

/// Makes the device of a rank, and is the only place that chooses one. Called by the rank itself (after the fork).
/// Requires: ResolveDevice let the plan pass. Errors: DoesNotFit if an arena of this rank cannot be had.
auto MakeDevice(const Plan& plan, const DevicePlace& place) -> ErrorOr<std::unique_ptr<RankDevice>>;

}  // namespace shardc
