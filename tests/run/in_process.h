// Steps of a plan with ranks as threads of the test, and the state that they leave, to be compared bit for bit.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/core/runner.h"

namespace shardc {

/// Bits of the parameters and the optimizer state that a rank owns, padding left out.
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

}  // namespace shardc
