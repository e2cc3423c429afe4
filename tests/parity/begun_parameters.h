// The parameters that a run begins with, put together from what its ranks own.
#pragma once

#include <atomic>
#include <cmath>
#include <string>

#include "compiler/base/bfloat16.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/parity/compare.h"
#include "tests/support/owned_intervals.h"

namespace shardc {

/// Begins a run with ranks as threads. Adds to `drawn` how many elements they drew.
inline auto BegunParameters(const Plan& plan, const std::string& run_dir, int64_t& drawn) -> NamedNumbers {
  NamedNumbers tensors;
  for (const Parameter& parameter : plan.parameters) {
    tensors[parameter.name].assign(static_cast<size_t>(parameter.num_elements()), NAN);
  }
  std::atomic<int64_t> drawn_by_all = 0;
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    context.options.run_dir = run_dir;
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    if (const auto begun = (*runner)->Begin(); !begun) {
      return begun.error();
    }
    for (const Drawn& of_parameter : (*runner)->drawn()) {
      drawn_by_all += of_parameter.count;
    }
    for (const SubVector& sub_vector : plan.sub_vectors) {
      // (Begin has compared the ranks that hold the same.)
      if (plan.mesh.IndexIn(CopyAxes(sub_vector, plan.mesh), context.rank) > 0) {
        continue;
      }
      const View slice = (*runner)->ViewOf(sub_vector.shard);
      ForEachOwnedInterval(
          plan, sub_vector, context.rank, [&](const Parameter& parameter, int64_t begin, int64_t end, int64_t at) {
            for (int64_t i = 0; i < end - begin; ++i) {
              tensors.at(parameter.name)[static_cast<size_t>(begin + i)] =
                  slice.dtype == DType::BF16 ? Load(slice.At<BFloat16>({})[at + i]) : slice.At<float>({})[at + i];
            }
          });
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok() && *code == ExitCode::Ok, "{}", code.ok() ? "" : code.error().message);
  drawn = drawn_by_all;
  return tensors;
}

}  // namespace shardc
