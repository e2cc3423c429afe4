// A gradient that is not finite, on one rank only: all ranks take the same decision, before anything is changed.
// How it comes to be on one rank: zero_stream.h. The owner of the row is the last rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "compiler/plan/local_parameter.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/fault/zero_stream.h"
#include "tests/support/launch_runners.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr float Huge = 2e37F;

/// One token over and over, of the last rank's half of the embedding.
auto MakeTraining(const std::string& norm, const std::string& policy) -> std::unique_ptr<Training> {
  auto training = std::make_unique<Training>(
      Sets{ZeroStream(norm), "train.on_nonfinite=" + policy, "train.steps=10", "train.eval_every=0"});
  WriteBin(*training / "tokens.bin", std::vector<uint16_t>(8000, 200));
  return training;
}

/// Bits of the parameters and the optimizer state that a rank owns.
auto StateOf(const Plan& plan, RankRunner& runner) -> std::vector<uint32_t> {
  std::vector<uint32_t> bits;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const StateRole role : StateRoles) {
      if (!HasRole(sub_vector, role)) {
        continue;
      }
      const View view = runner.ViewOf(StateOf(sub_vector, role));
      const auto* words = view.At<const uint32_t>(Moment{});
      bits.insert(bits.end(), words, words + view.num_elements());
    }
  }
  return bits;
}

/// Parameters with an element of the gradient, in this rank's slices, that is not finite.
auto BadParameters(const Plan& plan, RankRunner& runner, int64_t rank) -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const SubVector& sub_vector : plan.sub_vectors) {
    const auto* gradient = runner.ViewOf(sub_vector.gradient).At<const float>(Moment{});
    const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
    for (const Segment& segment : sub_vector.segments) {
      const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
      if (std::any_of(gradient + (owned.begin - slice_begin), gradient + (owned.end - slice_begin),
                      [](float x) { return !std::isfinite(x); })) {
        names.push_back(plan.parameters[segment.parameter].name);
      }
    }
  }
  return names;
}

/// Writes `value` over what this rank owns of the final norm's weight.
auto SetNorm(const Plan& plan, RankRunner& runner, int64_t rank, float value) -> void {
  for (const SubVector& sub_vector : plan.sub_vectors) {
    auto* shard = runner.ViewOf(sub_vector.shard).At<float>(Moment{});
    const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
    for (const Segment& segment : sub_vector.segments) {
      if (plan.parameters[segment.parameter].name == "model.norm.weight") {
        const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
        std::fill(shard + (owned.begin - slice_begin), shard + (owned.end - slice_begin), value);
      }
    }
  }
}

auto ScalarOf(RankRunner& runner, const Plan& plan, ScalarRole role) -> double {
  return runner.scalars()[plan.ScalarOf(role)];
}

TEST(Nonfinite, StopIsAgreedBeforeTheUpdate) {
  const auto training = MakeTraining("2e37", "stop");
  const Plan plan = training->Compile();
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = *training / "run"}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        const auto before = StateOf(plan, runner);
        const auto halt = runner.Step();
        RETURN_IF_ERROR(halt);
        // The premise: the last rank alone sees it.
        if (context.rank == 0) {
          EXPECT_THAT(BadParameters(plan, runner, context.rank), IsEmpty());
        } else {
          EXPECT_THAT(BadParameters(plan, runner, context.rank), ElementsAre("model.embed_tokens.weight"));
        }
        EXPECT_TRUE(halt->has_value()) << "rank " << context.rank;
        EXPECT_TRUE(StateOf(plan, runner) == before) << "rank " << context.rank;
        EXPECT_EQ(ScalarOf(runner, plan, ScalarRole::Step), 1);
        EXPECT_EQ(ScalarOf(runner, plan, ScalarRole::Updates), 0);
        EXPECT_EQ(ScalarOf(runner, plan, ScalarRole::NonFinite), 1);
        EXPECT_EQ(
            plan.parameters[ParameterId{static_cast<int32_t>(ScalarOf(runner, plan, ScalarRole::BadParameter))}].name,
            "model.embed_tokens.weight");
        EXPECT_TRUE(std::isfinite(ScalarOf(runner, plan, ScalarRole::Loss)));
        return halt->value_or(ExitCode::Ok);
      });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, ExitCode::Diverged);
}

TEST(Nonfinite, SkipLeavesOneUpdateOutOnAllRanks) {
  constexpr int64_t BadStep = 3;
  const auto training = MakeTraining("1", "skip");
  // The learning rate keeps the zeros until the bad step is over.
  const Plan plan = training->Compile({"optimizer.lr=\"if step <= 3 then 0 else 1e-3\""});
  const auto result = LaunchBegunRunners(
      plan, {.run_dir = *training / "run"}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
        runner.after_data() = [&] {
          if (ScalarOf(runner, plan, ScalarRole::Step) == BadStep) {
            SetNorm(plan, runner, context.rank, Huge);
          }
        };
        double loss_before = 0;
        for (int64_t step = 0; step < 10; ++step) {
          const auto before = StateOf(plan, runner);
          const auto halt = runner.Step();
          RETURN_IF_ERROR(halt);
          EXPECT_FALSE(halt->has_value());
          if (step == BadStep) {
            EXPECT_EQ(BadParameters(plan, runner, context.rank).empty(), context.rank == 0);
            SetNorm(plan, runner, context.rank, 1);
          }
          const bool skipped = ScalarOf(runner, plan, ScalarRole::NonFinite) != 0;
          EXPECT_EQ(skipped, step == BadStep) << "rank " << context.rank << " step " << step;
          // Until the learning rate is on, nothing moves but the moments of the one row.
          const bool moves = !skipped && (context.rank == 1 || step > BadStep);
          EXPECT_EQ(StateOf(plan, runner) != before, moves) << "rank " << context.rank << " step " << step;
          EXPECT_EQ(ScalarOf(runner, plan, ScalarRole::Step), static_cast<double>(step + 1));
          EXPECT_EQ(ScalarOf(runner, plan, ScalarRole::Updates),
                    static_cast<double>(step + 1 - (step >= BadStep ? 1 : 0)));
          const double loss = ScalarOf(runner, plan, ScalarRole::Loss);
          if (step > BadStep + 1) {
            EXPECT_LT(loss, loss_before) << "training continues";
          }
          loss_before = loss;
        }
        return ExitCode::Ok;
      });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, ExitCode::Ok);
}

TEST(Nonfinite, StopEndsTheProgramWithItsOwnCode) {
  const auto training = MakeTraining("2e37", "stop");
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Outcome outcome = training->Run();
    EXPECT_EQ(outcome.status, 7) << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_THAT(outcome.err, HasSubstr("started from scratch")) << "nothing was saved";
    EXPECT_THAT(outcome.err, HasSubstr("step 1: the gradient of model.embed_tokens.weight is not finite: "
                                       "embedding_backward made it first"));
    EXPECT_THAT(outcome.err, HasSubstr("no update was made\n  learning rate 0.001 in this step; newest good checkpoint "
                                       "of this run: none yet\n"));
    EXPECT_THAT(outcome.err, HasSubstr("train.on_nonfinite = \"skip\""));
    EXPECT_THAT(CheckpointsOf(*training / "run"), IsEmpty());
    const Metrics metrics = ReadMetrics(*training / "run");
    ASSERT_EQ(metrics.steps.size(), 1U);
    EXPECT_TRUE(std::isnan(metrics.steps[0].grad_norm)) << "null: JSON has no infinity";
  }
}

TEST(Nonfinite, SkipCountsStepsAndUpdatesApart) {
  const auto training = MakeTraining("2e37", "skip");
  const Outcome outcome = training->Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step 1: the gradient of model.embed_tokens.weight is not finite"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("step 2: "))) << "once for all that follow one another";
  EXPECT_EQ(ReadMetrics(*training / "run").steps.size(), 10U);
  const auto manifest = nlohmann::json::parse(ReadText(*training / "run/checkpoints/step-00000010/manifest.json"));
  EXPECT_EQ(manifest.at("state").at("step").get<double>(), 10);
  EXPECT_EQ(manifest.at("state").at("updates").get<double>(), 0);
}

TEST(Nonfinite, DivergedStateIsNeverSaved) {
  const Training training({"train.steps=20", "train.eval_every=0", "checkpoint.every=5", "checkpoint.keep=0"});
  const std::string run_dir = training / "run";
  const Outcome outcome = training.Run("run", {R"(optimizer.lr="if step == 6 then 1e30 else 1e-3")"});
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step 8: the gradient model.layers.1.mlp.down_proj.sum.grad is not finite"));
  EXPECT_THAT(outcome.err,
              HasSubstr("newest good checkpoint of this run: " + run_dir + "/checkpoints/step-00000005\n"));
  EXPECT_THAT(CheckpointsOf(run_dir), ElementsAre("step-00000005"));
  const Outcome again = training.Run("run", {"optimizer.lr=1e-3"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("at step 5\n"));
  EXPECT_THAT(again.err, Not(HasSubstr("not finite")));
  EXPECT_EQ(ReadMetrics(run_dir).steps.size(), 20U);
}

// JSON has no word for a number that is not finite: each line and each result stays JSON, with null in its place.
TEST(NonFinite, LossesAreNullInJson) {
  const Training training(
      {"init.rule=[{match=\"*norm.weight\",value=100},{match=\"*proj.weight\",value=0},"
       "{match=\"*tokens.weight\",value=\"normal(0, 1)\"},"
       "{match=\"lm_head.weight\",value=\"uniform(-1e38, 1e38)\"}]",
       "train.on_nonfinite=skip", "train.steps=2", "train.eval_every=1"});
  const Outcome run = training.Run();
  ASSERT_EQ(run.status, 0) << run.err;
  std::istringstream lines(ReadText(training / "run/metrics.jsonl"));
  int num_lines = 0;
  for (std::string line; std::getline(lines, line); ++num_lines) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_TRUE(json.at(json.contains("loss") ? "loss" : "eval_loss").is_null()) << line;
  }
  EXPECT_EQ(num_lines, 4);
  const Outcome eval = training.Eval(training / "run/checkpoints/step-00000002");
  ASSERT_EQ(eval.status, 0) << eval.err;
  EXPECT_EQ(eval.out, "{\"step\":2,\"eval_loss\":null}\n");
}

}  // namespace
}  // namespace shardc
