// How much memory this process group may still take, and whether a plan fits into it: asked before a run starts, since
// the kernel grants mappings freely and kills later. And how much this process has taken.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "runtime/memory/arenas.h"

namespace shardc {

struct AvailableMemory {
  Bytes bytes;
  /// What sets the limit: "available on this host", "left in control group /job".
  std::string limit;
  /// Name of the limit, equal for all processes of one machine that the limit is for together, and for no others.
  std::string pool;
};

/// The least of MemAvailable and what the memory control groups of this process leave (v1 and v2), reclaimable file
/// pages counted as free. `root` stands before /proc and /sys, for tests.
auto MeasureAvailableMemory(const std::string& root = "") -> AvailableMemory;

/// "control group /job has a limit of 1.65 GiB": the smallest limit on this process; empty where no group has one.
auto GroupLimitText(const std::string& root = "") -> std::string;

/// What a host of the job takes outside of its arenas, and what its launcher has of that before the ranks are there.
struct OutsideUse {
  Bytes planned;
  Bytes taken;
};

/// The part of a job that takes memory of one machine: the hosts that it plays, mostly one, with as many ranks each.
struct MachinePart {
  int64_t num_hosts = 1;
  int64_t ranks_per_host = 1;
};

/// Errors: ExitCode::DoesNotFit with the bytes planned for all ranks, the bytes available, and `remedy`: what makes the
/// plan need less.
auto CheckFits(const ArenaSizes& sizes, const MachinePart& part, const OutsideUse& outside,
               const AvailableMemory& available, const std::string& remedy) -> Status;

/// The most that was resident at once since this process began (VmHWM): arenas, program, libraries, stacks; pages of
/// peers that it read, too. 0 where the kernel does not tell.
auto MeasurePeakResident() -> Bytes;
/// What is resident now: the same, at this moment. Cost: one small file that the kernel makes.
auto MeasureResident() -> Bytes;
/// Gives memory that was freed back to the system, which the allocator otherwise keeps: processes forked from this one
/// would have it too, and count it.
auto GiveBackFreedMemory() -> void;
/// Returns the memory that this process has for itself now (RssAnon): heap, stacks, changed pages. Unchanged pages of
/// files are left out, because a control group may have them from another process. 0 if the kernel does not report it.
auto MeasureAnonymous() -> Bytes;
/// The part of a process in the memory of all: a page that n processes have counts 1/n in each, so that the sum over
/// processes counts every page once (PSS).
struct ProportionalMemory {
  Bytes all;
  /// Pages in it of files as they are on disk, the program's and its libraries'. The kernel drops them if memory is
  /// short, and it maps more or fewer around each page that is read, as its cache holds the file.
  Bytes files;
};
/// Returns 0 if the kernel does not report it.
auto MeasureProportional(int32_t pid) -> ProportionalMemory;

}  // namespace shardc
