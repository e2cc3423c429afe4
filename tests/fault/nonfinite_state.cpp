// State that is not finite: never saved, wherever it is and whatever the policy; named where it is loaded; and updates
// that are left out end the run where there are too many of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <mutex>
#include <nlohmann/json.hpp>

#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/fault/state_elements.h"
#include "tests/support/launch_runners.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::string QProj = "model.layers.0.self_attn.q_proj.weight";

// The second update throws the parameters out of f32.
const std::string Thrown = R"(optimizer.lr="if step == 1 then 1e38 else 1e-3")";

TEST(NonfiniteState, IsNotSavedAndTheLastFiniteCheckpointStays) {
  const Training training({"train.steps=8", "train.eval_every=0", "checkpoint.every=1", "checkpoint.keep=1"});
  for (const std::string policy : {"stop", "skip"}) {
    SCOPED_TRACE(policy);
    const std::string run_dir = training / policy;
    const Outcome outcome = training.Run(policy, {Thrown, "train.on_nonfinite=" + policy});
    EXPECT_EQ(outcome.status, 7) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("step 2 section save op"), HasSubstr("model.embed_tokens.weight is not finite on rank"),
                      HasSubstr("nothing was written, older checkpoints stand"), HasSubstr("learning rate 1e+38"),
                      HasSubstr("newest good checkpoint of this run: " + run_dir + "/checkpoints/step-00000001\n")));
    EXPECT_THAT(CheckpointsOf(run_dir), ElementsAre("step-00000001"));
    EXPECT_THAT(UnfinishedSavesOf(run_dir), IsEmpty());
    const Outcome again = training.Run(policy, {"optimizer.lr=1e-3", "train.on_nonfinite=" + policy});
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.err, AllOf(HasSubstr("at step 1\n"), Not(HasSubstr("not finite"))));
    EXPECT_THAT(CheckpointsOf(run_dir), ElementsAre("step-00000008"));
  }
}

/// Takes a step, writes a number over an element of the last rank's, and saves; what each rank says of that.
auto SaveWith(const Plan& plan, const Training& training, const std::string& run, const StateElement& at, float value)
    -> std::vector<std::string> {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  std::vector<std::string> messages(static_cast<size_t>(plan.mesh.num_ranks()));
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = training / run}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        const auto halt = runner.Step();
        RETURN_IF_ERROR(halt);
        const bool owned = SetInMemory(plan, runner, context.rank, at, value);
        EXPECT_EQ(owned, context.rank == plan.mesh.num_ranks() - 1) << "rank " << context.rank;
        const Status saved = runner.RunSection(SectionKind::Save);
        EXPECT_TRUE(saved || saved.error().code == ExitCode::Diverged);
        messages[static_cast<size_t>(context.rank)] = saved ? "" : saved.error().message;
        return ExitCode::Ok;
      });
  EXPECT_TRUE(result.ok()) << result.error().message;
  return messages;
}

TEST(NonfiniteState, UselessCheckpointNamesOneBefore) {
  const Training training({"train.steps=8", "train.eval_every=0", "shard.units=\"size:1 GiB\""});
  ASSERT_EQ(training.Run("run", {"train.steps=1"}).status, 0);
  // The last element of the last parameter, which the last rank has: finite, and too large to compute with.
  const Plan plan = training.Compile();
  const Parameter& last = plan.parameters[plan.sub_vectors.begin()->segments.back().parameter];
  const StateElement at{.parameter = last.name, .element = last.num_elements() - 1};
  EXPECT_THAT(SaveWith(plan, training, "run", at, 3e38F), testing::Each(""));
  const std::string checkpoints = training / "run/checkpoints/step-";
  for (const std::string policy : {"stop", "skip"}) {
    const Outcome again = training.Run("run", {"train.on_nonfinite=" + policy, "train.max_skipped=1"});
    EXPECT_EQ(again.status, 7) << again.err;
    EXPECT_THAT(again.err, HasSubstr("no step since the start from " + checkpoints +
                                     "00000002 was finite: its state is finite and of no use"));
    EXPECT_THAT(again.err, HasSubstr("continues from the one before it, " + checkpoints + "00000001\n"));
  }
  std::filesystem::remove_all(checkpoints + "00000001");
  EXPECT_THAT(training.Run().err, HasSubstr("then run again, which begins from scratch\n"));
}

TEST(NonfiniteState, OfOneRankStopsTheSaveOfAll) {
  struct Case {
    Sets sets;
    StateRole role = StateRole::Parameter;
  };
  const Case cases[] = {
      {{}, StateRole::Parameter},
      {{}, StateRole::ExpAvg},
      {{"precision.master=bf16"}, StateRole::Parameter},
      {{"precision.compute=bf16"}, StateRole::ExpAvgSq},
      {{"mesh.tp=2"}, StateRole::ExpAvg},
      {{"mesh.tp=2", "precision.compute=bf16"}, StateRole::Parameter},
      {{"optimizer.name=sgd", "optimizer.momentum=0.9"}, StateRole::MomentumBuffer},
      {{"optimizer.name=sgd"}, StateRole::Parameter},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(fmt::format("{} {}", fmt::join(test.sets, " "), ToText(test.role)));
    // One unit of all: the last rank has the last parameter's last element.
    const Training training({"train.steps=4", "train.eval_every=0", "shard.units=\"size:1 GiB\""});
    const Plan plan = training.Compile(test.sets);
    StateElement at{.role = test.role};
    for (const SubVector& sub_vector : plan.sub_vectors) {
      if (!IsWhole(sub_vector, plan.mesh)) {
        const Parameter& last = plan.parameters[sub_vector.segments.back().parameter];
        at.parameter = last.name;
        at.element = last.num_elements() - 1;
      }
    }
    for (const float value : {NaN, Inf, -Inf}) {
      const auto messages = SaveWith(plan, training, "run", at, value);
      for (const std::string& message : messages) {
        EXPECT_THAT(message, HasSubstr(fmt::format("{} is not finite on rank {}; nothing was written",
                                                   StateName(at.parameter, at.role), plan.mesh.num_ranks() - 1)));
      }
      EXPECT_THAT(CheckpointsOf(training / "run"), IsEmpty());
      EXPECT_THAT(UnfinishedSavesOf(training / "run"), IsEmpty());
    }
    for (const std::string& message : SaveWith(plan, training, "run", at, 3e38F)) {
      EXPECT_EQ(message, "");
    }
    EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000001"));
  }
}

/// Runs ten steps, of which some are not finite: there the last norm's weight is NaN while the step runs.
struct SkipRun {
  ExitCode code = ExitCode::Ok;
  int64_t steps = 0;
};
auto RunWithBadSteps(const Training& training, const std::set<int64_t>& bad_steps, const Sets& sets) -> SkipRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  const Plan plan = training.Compile(sets);
  SkipRun run;
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = training / "run"}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        const auto step_now = [&] { return static_cast<int64_t>(runner.scalars()[plan.ScalarOf(ScalarRole::Step)]); };
        const auto set_norm = [&](float value) {
          SetInMemory(plan, runner, context.rank, {.parameter = "model.norm.weight", .element = 0}, value);
        };
        runner.after_data() = [&] {
          if (bad_steps.contains(step_now() + 1)) {
            set_norm(NaN);
          }
        };
        for (int64_t step = 1; step <= plan.run.steps; ++step) {
          const auto halt = runner.Step();
          RETURN_IF_ERROR(halt);
          EXPECT_EQ(runner.scalars()[plan.ScalarOf(ScalarRole::NonFinite)], bad_steps.contains(step) ? 1 : 0) << step;
          if (context.rank == 0) {
            run.steps = step;
          }
          if (bad_steps.contains(step)) {
            set_norm(1);
          }
          if (*halt) {
            return **halt;
          }
        }
        return ExitCode::Ok;
      });
  EXPECT_TRUE(result.ok()) << result.error().message;
  run.code = result.ok() ? *result : ExitCode::InternalFault;
  return run;
}

TEST(NonfiniteState, SkipsAreCountedOneAfterAnother) {
  const Training training({"train.steps=14", "train.eval_every=0", "train.on_nonfinite=skip"});
  struct Case {
    Sets sets;
    std::set<int64_t> bad_steps;
    ExitCode code = ExitCode::Ok;
    int64_t steps = 14;
  };
  const std::set<int64_t> all{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  const Case cases[] = {
      {{"train.max_skipped=2"}, {1, 2, 4, 5, 7, 8}, ExitCode::Ok, 14},
      {{"train.max_skipped=2"}, {1, 2, 4, 5, 6, 8}, ExitCode::Diverged, 6},
      {{"train.max_skipped=1"}, {3, 4}, ExitCode::Diverged, 4},
      {{}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, ExitCode::Ok, 14},
      {{}, all, ExitCode::Diverged, 11},
      {{"train.max_skipped=0"}, all, ExitCode::Ok, 14},
      {{"train.on_nonfinite=stop"}, {5}, ExitCode::Diverged, 5},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(fmt::format("{} {}", fmt::join(test.sets, " "), fmt::join(test.bad_steps, ",")));
    const SkipRun run = RunWithBadSteps(training, test.bad_steps, test.sets);
    EXPECT_EQ(run.code, test.code);
    EXPECT_EQ(run.steps, test.steps);
  }
}

TEST(NonfiniteState, SkippingIsNoEndlessWayOn) {
  // The update itself threw the parameters out of f32: no update after it is finite.
  const Training training({"train.steps=12", "train.eval_every=0", "train.on_nonfinite=skip"});
  const Outcome outcome = training.Run("run", {Thrown, "train.max_skipped=3"});
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step 3: model.embed_tokens.weight is not finite: element 0 is nan, on rank 0; no "
                                     "update was made\n"));
  EXPECT_THAT(outcome.err, HasSubstr("step 6: 4 updates left out one after another, more than `train.max_skipped` "
                                     "allows: the run ends\n"));
  EXPECT_EQ(ReadMetrics(training / "run").steps.size(), 6U);
  EXPECT_THAT(CheckpointsOf(training / "run"), IsEmpty());
}

TEST(NonfiniteState, ACountOfSkipsIsInNoCheckpoint) {
  const Training training({"train.steps=4", "train.eval_every=0", "train.on_nonfinite=skip"});
  ASSERT_EQ(training.Run().status, 0);
  const auto manifest = nlohmann::json::parse(ReadText(training / "run/checkpoints/step-00000004/manifest.json"));
  EXPECT_EQ(manifest.at("state"), (nlohmann::json{{"step", 4}, {"updates", 4}}));
}

TEST(NonfiniteState, InACheckpointIsNamedAtTheLoad) {
  const Training training({"train.steps=4", "train.eval_every=0"});
  ASSERT_EQ(training.Run("sound").status, 0);
  struct Case {
    StateElement at;
    float value = 0;
    std::string text;
    Sets sets = {};
  };
  const Case cases[] = {
      {{QProj, StateRole::Parameter, 517}, NaN, QProj + " is not finite: element 517 is nan, on rank 0"},
      {{QProj, StateRole::ExpAvg, 3}, NaN, "exp_avg of " + QProj + " is not finite: element 3 is nan, on rank 0"},
      {{QProj, StateRole::ExpAvgSq, 3}, Inf, "exp_avg_sq of " + QProj + " is not finite: element 3 is inf, on rank 0"},
      {{"model.norm.weight", StateRole::Parameter, 31}, -Inf, "model.norm.weight is not finite: element 31 is -inf"},
      // Columns are cut: element 40 is the second half of the first row.
      {{"model.layers.1.mlp.down_proj.weight", StateRole::Parameter, 40},
       NaN,
       "model.layers.1.mlp.down_proj.weight is not finite: element 40 is nan, on rank 3",
       {"mesh.tp=2"}},
      // f32 can hold it, the type that is computed in cannot.
      {{QProj, StateRole::Parameter, 9},
       3.4e38F,
       "what is computed with of " + QProj + " is not finite: element 9 is inf, on rank 0",
       {"precision.compute=bf16"}},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.text);
    const std::string run_dir = training / "run";
    std::filesystem::remove_all(run_dir);
    std::filesystem::copy(training / "sound", run_dir, std::filesystem::copy_options::recursive);
    const std::string checkpoint = run_dir + "/checkpoints/step-00000004";
    SetInCheckpoint(checkpoint, test.at, test.value);
    const auto before = ContentsOf(run_dir);
    Sets sets = test.sets;
    sets.emplace_back("train.steps=6");
    const Outcome outcome = training.Run("run", sets);
    EXPECT_EQ(outcome.status, 5) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(checkpoint), HasSubstr(test.text), HasSubstr("move this one away")));
    EXPECT_EQ(ReadMetrics(run_dir).steps.size(), 4U) << "no step was taken";
    EXPECT_THAT(CheckpointsOf(run_dir), ElementsAre("step-00000004"));
    if (test.at.role == StateRole::Parameter && test.sets.empty()) {
      const Outcome eval = RunProcess(training.Command("eval", {"--checkpoint", checkpoint, "--set", "train.steps=6"}));
      EXPECT_EQ(eval.status, 5) << eval.err;
      EXPECT_THAT(eval.err, HasSubstr(test.text));
      const Outcome seeded =
          training.Run("seeded", {"start.run_id=seeded", fmt::format("start.first={{ seed = \"{}\" }}", checkpoint)});
      EXPECT_EQ(seeded.status, 5) << seeded.err;
      EXPECT_THAT(seeded.err, AllOf(HasSubstr(checkpoint), HasSubstr(test.text), HasSubstr("loaded from tensor")));
    }
  }
}

TEST(NonfiniteState, OfAnInitRuleIsNamedWithTheRule) {
  // f32 can hold it, bf16 cannot, whether it is kept in bf16 or computed with in it.
  const Training training({"train.steps=4", "train.eval_every=0", R"(init.rule=[{match = "*", value = 3.4e38}])"});
  for (const char* type : {"precision.master=bf16", "precision.compute=bf16"}) {
    const Outcome outcome = training.Run("run", {type});
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("model.embed_tokens.weight is not finite: element 0 is inf, on rank 0"),
                                   HasSubstr("its init rule is 3.4e+38")));
    EXPECT_FALSE(std::filesystem::exists(training / "run/metrics.jsonl"));
  }
}

}  // namespace
}  // namespace shardc
