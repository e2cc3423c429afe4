// Runs of a test that works with the runner of each rank itself.
#pragma once

#include <functional>

#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"

namespace shardc {

using UseRunner = std::function<ErrorOr<ExitCode>(RankContext&, RankRunner&)>;

/// Launches the ranks of a plan as threads, each with a runner. `prepare` is called before the runner is made.
inline auto LaunchRunners(const Plan& plan, const LaunchOptions& options, const UseRunner& use,
                          const std::function<void(RankContext&)>& prepare = {}) -> ErrorOr<ExitCode> {
  return LaunchThreads(plan, options, [&](RankContext& context) -> ErrorOr<ExitCode> {
    if (prepare) {
      prepare(context);
    }
    const auto runner = RankRunner::Create(context);
    RETURN_IF_ERROR(runner);
    return use(context, **runner);
  });
}

/// Launches as LaunchRunners does. Each runner has begun its run.
inline auto LaunchBegunRunners(const Plan& plan, const LaunchOptions& options, const UseRunner& use,
                               const std::function<void(RankContext&)>& prepare = {}) -> ErrorOr<ExitCode> {
  return LaunchRunners(
      plan, options,
      [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        RETURN_IF_ERROR(runner.Begin());
        return use(context, runner);
      },
      prepare);
}

}  // namespace shardc
