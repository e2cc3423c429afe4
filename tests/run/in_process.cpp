#include "tests/run/in_process.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"

namespace shardc {

auto OwnedStateOf(const Plan& plan, RankRunner& runner, int64_t rank) -> std::vector<uint32_t> {
  std::vector<uint32_t> bits;
  HostScratch scratch;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
    for (const StateRole role : StateRoles) {
      if (!HasRole(sub_vector, role)) {
        continue;
      }
      const View view = runner.ViewOf(StateOf(sub_vector, role));
      const auto read = runner.binder().device().Read(view.At<const std::byte>({}), view.num_elements() * 4, scratch);
      CHECK(read.ok(), "{}", read.error().message);
      const auto* slice = reinterpret_cast<const uint32_t*>(*read);
      for (const Segment& segment : sub_vector.segments) {
        const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
        bits.insert(bits.end(), slice + (owned.begin - slice_begin),
                    slice + (owned.begin - slice_begin) + owned.size());
      }
    }
  }
  return bits;
}

namespace {

auto RunSteps(RankContext& context, int64_t steps, InProcessRun& run) -> ErrorOr<ExitCode> {
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
    auto result = RunSteps(context, steps, run);
    if (!result) {
      run.errors[static_cast<size_t>(context.rank)] = result.error().message;
    }
    return result;
  });
  CHECK(code.ok(), "{}", code.error().message);
  run.code = *code;
  return run;
}

}  // namespace shardc
