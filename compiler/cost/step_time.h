// How long a step takes on a GPU, estimated before it runs: the plan's streams and events, and the time of each op by
// its FLOPs and bytes at the rates of a machine.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/machine_rows.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Part of a step by which its estimate may be wrong on one rank: four steps of 36 to 261 ms that were measured differ
/// by no more (StepTime.IsNearMeasuredSteps).
constexpr double ErrorOfRank = 0.06;
/// Part of a step by which its estimate may be wrong on several ranks. Source: twice the largest difference of the
/// published runs that the rates between ranks were compared with (tests/golden/published_steps.cpp).
constexpr double ErrorBetweenRanks = 0.125;

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
  /// One evaluation, and how many the run makes.
  Seconds evaluation;
  int64_t num_evaluations = 0;

  auto step() const -> Seconds { return products + attention + others + peers + host; }
  /// Returns what so many steps take, and the evaluations.
  auto run(int64_t steps) const -> Seconds {
    return Seconds{step().value * static_cast<double>(steps) + evaluation.value * static_cast<double>(num_evaluations)};
  }
  /// Returns the least and the most that the step may take.
  auto least() const -> Seconds { return Seconds{step().value * (1 - uncertainty())}; }
  auto most() const -> Seconds { return Seconds{step().value * (1 + uncertainty())}; }
  auto uncertainty() const -> double { return ranks > 1 ? ErrorBetweenRanks : 0; }
  int64_t ranks = 1;
  Mesh mesh;
  /// GPUs of a host, where the plan has more ranks than a host can have GPUs and names no hosts. 0: as the plan has it.
  int64_t assumed_of_host = 0;
  /// Model FLOPs of a rank per second, as a part of the machine's peak in bf16.
  double mfu = 0;
};

/// Returns the part of a step that one plan has to save before it is known to be faster than another. Plans on one mesh
/// share the error of the rates between ranks (docs/decisions/0023-a-gain-is-more-than-what-plans-do-not-share.md).
inline auto ErrorOfGain(const StepTime& a, const StepTime& b) -> double {
  return a.mesh == b.mesh ? ErrorOfRank : ErrorBetweenRanks;
}

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
