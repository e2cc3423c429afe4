// How long a step takes on a GPU, estimated before it runs: the plan's streams and events, and the time of each op by
// its FLOPs and bytes at the rates of a machine.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/machine_rows.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The parts of a step of one rank, which add up to it.
struct StepTime {
  const MachineRow* machine = nullptr;
  Seconds products;
  Seconds attention;
  /// All other ops that compute.
  Seconds others;
  /// No op computes, as the next one waits for other ranks.
  Seconds peers;
  /// No op computes, as the host has not launched the next one.
  Seconds host;

  auto step() const -> Seconds { return products + attention + others + peers + host; }
  /// Returns the least and the most that the step may take. Source: twice the largest difference of the published runs
  /// that the rates between ranks were compared with (tests/golden/published_steps.cpp).
  auto least() const -> Seconds { return Seconds{step().value * (1 - uncertainty())}; }
  auto most() const -> Seconds { return Seconds{step().value * (1 + uncertainty())}; }
  auto uncertainty() const -> double { return ranks > 1 ? 0.125 : 0; }
  int64_t ranks = 1;
  /// GPUs of a host, where the plan has more ranks than a host can have GPUs and names no hosts. 0: as the plan has it.
  int64_t assumed_of_host = 0;
  /// Model FLOPs of a rank per second, as a part of the machine's peak in bf16.
  double mfu = 0;
};

/// Passes of a loop that are followed, at most. The last of them stands for the rest.
constexpr int64_t MostPassesFollowed = 3;

/// Returns the estimate for a plan whose device overlaps streams; nothing for others, or before the pass synchronize.
/// `machine` null: the one that run.machine names, or else the one whose rates were measured. Requires: most_passes is
/// at least 2.
auto StepTimeOf(const Plan& plan, const MachineRow* machine = nullptr, int64_t most_passes = MostPassesFollowed)
    -> std::optional<StepTime>;

/// Returns what the estimate takes for granted, on one line without its end; empty if nothing.
auto CaveatOf(const StepTime& time) -> std::string;
/// Returns lines for people.
auto StepTimeText(const StepTime& time, const Plan& plan) -> std::string;
/// Returns "6.64 s", "262 ms", "49 us".
auto FormatTime(Seconds time) -> std::string;
/// Returns "262 ms"; of several ranks with its ends, "830 ms (726 to 934 ms)".
auto FormatStep(const StepTime& time) -> std::string;

}  // namespace shardc
