// Steps of a plan with ranks as threads of the test, and the state that they leave, to be compared bit for bit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/runner.h"
#include "tests/support/whole_state.h"

namespace shardc {

/// Returns the bits of the parameters and the optimizer state that a rank owns, padding left out.
auto OwnedStateOf(const Plan& plan, RankRunner& runner, int64_t rank) -> std::vector<uint32_t>;

struct InProcessRun {
  ExitCode code = ExitCode::Ok;
  /// By rank: why it ended; empty where it ran to the end.
  std::vector<std::string> errors;
  /// Bits of loss, gradient norm and terms of the loss of each step, and of the evaluation's loss and its terms.
  std::vector<uint64_t> numbers;
  /// By rank.
  std::vector<std::vector<uint32_t>> states;

  auto SameBits(const InProcessRun& other) const -> bool { return numbers == other.numbers && states == other.states; }
};

/// Initialises, takes `steps` steps and evaluates, with the plan's ranks as threads. `prepare` is called for each rank
/// before anything is bound.
auto RunInProcess(const Plan& plan, int64_t steps, const std::function<void(RankContext&)>& prepare = {})
    -> InProcessRun;

/// The outcome of a launch, beside its run directory.
struct TrainedRun {
  ExitCode code = ExitCode::Ok;
  /// The errors of the ranks, a line each.
  std::string error;
  /// The state before the first step.
  WholeState at_begin;
  WholeState at_end;
};

/// Begins or continues a run as shardc-run does, with the plan's ranks as threads, and trains to its end. `prepare` as
/// above.
auto TrainInProcess(const Plan& plan, const std::string& run_dir, const std::function<void(RankContext&)>& prepare = {})
    -> TrainedRun;

}  // namespace shardc
