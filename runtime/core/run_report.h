// What a run says of itself besides its steps: whole lines, for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/machine_rows.h"
#include "runtime/control/rank_control.h"
#include "runtime/data/token_reader.h"
#include "runtime/device/device.h"
#include "runtime/device/guard.h"

namespace shardc {

/// Returns how often the run reads each source of a mixture; empty if there is one stream.
auto SourcesText(const TokenReader& tokens, int64_t steps) -> ErrorOr<std::string>;

/// Memory of a rank at one time.
struct RankMemory {
  int64_t pid = 0;
  /// Memory of its process: all, and pages of files.
  int64_t proportional = 0;
  int64_t files = 0;
  /// Pages of its arenas in memory of the host, but for that which all ranks of a host share.
  int64_t arenas = 0;
  int64_t gathered = 0;
};

/// Gathers the memory of all ranks of this rank's host, in rank order, at a time when all of them live. Collective over
/// all ranks.
auto GatherMemory(RankControl& control, const RankDevice& device) -> ErrorOr<std::vector<RankMemory>>;

/// The memory that a plan has for the ranks of a host.
struct PlannedMemory {
  Bytes arenas;
  /// Heap, stacks and the plan; and pages of the program's files, which the kernel drops where memory is short.
  Bytes own;
  Bytes files;
};
auto PlannedMemoryOf(const Plan& plan) -> PlannedMemory;

/// Returns the memory of the job on this host, measured and planned, as a table: in arenas, outside of them, and pages
/// of files. Empty if the kernel does not report it. `launcher`: its process, 0 if ranks are threads.
auto JobMemoryText(const Plan& plan, const std::vector<RankMemory>& ranks, int32_t launcher) -> std::string;

/// Memory of a device that has its own, against the plan.
struct DeviceUse {
  Bytes arenas;
  /// By the driver's count.
  DeviceMemory driver;
  /// Reckoned with beside the arenas; nothing if no row of docs/machines.md is that of the card.
  std::optional<Bytes> planned_outside;

  auto outside() const -> Bytes { return driver.taken - arenas; }
};

/// Measures the device of a rank; nothing if its arenas are in memory of the host. `machine`: the row of its card, or
/// null.
auto MeasureDevice(const Plan& plan, const RankDevice& device, const MachineRow* machine) -> std::optional<DeviceUse>;
/// Returns a line about it.
auto DeviceUseText(const DeviceUse& use) -> std::string;

/// Returns the bytes of each arena of the rank as text, planned and touched; in guard mode (`guard` is set) those of
/// pages with buffers, and of pages that were written. `before`: the device's memory after the second step, if that was
/// measured.
auto MemoryText(int64_t rank, const RankDevice& device, const std::optional<DeviceMemory>& before, Guard* guard)
    -> ErrorOr<std::string>;

}  // namespace shardc
