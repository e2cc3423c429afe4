#include "tests/support/in_process.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <mutex>

#include "compiler/plan/local_parameter.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"

namespace shardc {

auto OwnedStateOf(const Plan& plan, RankRunner& runner, int64_t rank) -> std::vector<uint32_t> {
  std::vector<uint32_t> owned_bits;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
    for (const StateRole role : StateRoles) {
      if (!HasRole(sub_vector, role)) {
        continue;
      }
      const std::vector<uint32_t> bits = BitsOf(runner, StateOf(sub_vector, role));
      for (const Segment& segment : sub_vector.segments) {
        const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
        const auto begin = bits.begin() + (owned.begin - slice_begin);
        owned_bits.insert(owned_bits.end(), begin, begin + owned.size());
      }
    }
  }
  return owned_bits;
}

namespace {

auto TakeSteps(RankContext& context, int64_t steps, InProcessRun& run) -> ErrorOr<ExitCode> {
  const Plan& plan = *context.plan;
  auto made = RankRunner::Create(context);
  if (!made) {
    return made.error();
  }
  RankRunner& runner = **made;
  const auto note = [&](std::initializer_list<ScalarRole> roles) {
    for (const ScalarId id : plan.scalars.ids()) {
      if (context.rank == 0 && std::ranges::find(roles, plan.scalars[id].role) != roles.end()) {
        run.numbers.push_back(std::bit_cast<uint64_t>(runner.scalars()[id]));
      }
    }
  };
  RETURN_IF_ERROR(runner.RunSection(SectionKind::Constants));
  RETURN_IF_ERROR(runner.RunSection(SectionKind::Init));
  for (int64_t step = 0; step < steps; ++step) {
    const auto halt = runner.Step();
    if (!halt) {
      return halt.error();
    }
    note({ScalarRole::Loss, ScalarRole::GradNorm, ScalarRole::TermLoss});
    if (*halt) {
      return **halt;
    }
  }
  if (!plan.section(SectionKind::Eval).ops.empty()) {
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Eval));
    note({ScalarRole::EvalLoss, ScalarRole::TermEvalLoss});
  }
  run.states[static_cast<size_t>(context.rank)] = OwnedStateOf(plan, runner, context.rank);
  return ExitCode::Ok;
}

}  // namespace

auto RunInProcess(const Plan& plan, int64_t steps, const std::function<void(RankContext&)>& prepare) -> InProcessRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  InProcessRun run;
  run.errors.resize(static_cast<size_t>(plan.mesh.num_ranks()));
  run.states.resize(run.errors.size());
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    if (prepare) {
      prepare(context);
    }
    auto result = TakeSteps(context, steps, run);
    if (!result) {
      run.errors[static_cast<size_t>(context.rank)] = result.error().message;
    }
    return result;
  });
  CHECK(code.ok(), "{}", code.error().message);
  run.code = *code;
  return run;
}

auto TrainInProcess(const Plan& plan, const std::string& run_dir, const std::function<void(RankContext&)>& prepare)
    -> TrainedRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  TrainedRun run;
  std::mutex mutex;
  std::vector<int64_t> has_begun(static_cast<size_t>(plan.mesh.num_ranks()), 0);
  const auto train = [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto made = RankRunner::Create(context);
    if (!made) {
      return made.error();
    }
    RankRunner& runner = **made;
    const auto take = [&](WholeState& state) {
      const std::lock_guard lock(mutex);
      state.Take(plan, runner, context.rank);
    };
    runner.after_data() = [&] {
      if (has_begun[static_cast<size_t>(context.rank)]++ == 0) {
        take(run.at_begin);
      }
    };
    const auto code = runner.Train();
    if (code) {
      take(run.at_end);
    }
    return code;
  };
  const auto code = LaunchThreads(plan, {.run_dir = run_dir}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    if (prepare) {
      prepare(context);
    }
    auto result = train(context);
    if (!result) {
      const std::lock_guard lock(mutex);
      run.error += result.error().message + "\n";
    }
    return result;
  });
  CHECK(code.ok(), "{}", code.error().message);
  run.code = *code;
  return run;
}

}  // namespace shardc
