// Runs over a mixture of sources: stopped and continued, on other meshes, and with weights that are no longer those
// of the checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/text.h"
#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/launch_runners.h"
#include "tests/support/plan_samples.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* Sources = R"toml(
[data]
eval_tokens = 500

[[data.source]]
name = "words"
tokens = ["tokens.bin"]
weight = "0.9 - 0.4 * step / steps"

[[data.source]]
name = "digits"
tokens = ["digits.bin"]
weight = "if step < 10 then 0 else 0.3"
)toml";

/// The tiny training over words and, from step 10 on, digits, of which an epoch is 46 samples.
class MixedTraining : public Training {
 public:
  explicit MixedTraining(Sets sets = {}) : Training(std::move(sets)) {
    WriteText(*this / "tiny.toml", Edited(std::string(TinyRecipe()),
                                          {{"[data]\ntokens = [\"tokens.bin\"]\neval_tokens = 1000\n", Sources}}));
    std::vector<uint16_t> digits;
    for (int i = 0; i < 2000; ++i) {
      digits.push_back(static_cast<uint16_t>('0' + (i * i + i / 7) % 10));
    }
    WriteBin(*this / "digits.bin", digits);
  }
};

auto SetWeights(const std::string& words, const std::string& digits) -> std::string {
  return fmt::format(
      "data.source=[{{name=\"words\", tokens=[\"tokens.bin\"], weight=\"{}\"}}, "
      "{{name=\"digits\", tokens=[\"digits.bin\"], weight=\"{}\"}}]",
      words, digits);
}

TEST(MixedRun, GoesOnWithTheSameBits) {
  for (const Sets& sets : std::vector<Sets>{{}, {"data.order=sequential", "batch.accumulate=2"}}) {
    const MixedTraining training(sets);
    const Outcome whole = training.Run("whole");
    ASSERT_EQ(whole.status, 0) << whole.err;
    EXPECT_THAT(whole.err, HasSubstr("  source words: "));
    ASSERT_EQ(training.Run().status, 0);
    // As if it had been killed after step 20.
    std::filesystem::remove_all(training / "run/checkpoints/step-00000040");
    const Outcome again = training.Run();
    ASSERT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("at step 20\n"));
    ExpectSameRun(training / "run", training / "whole");
    EXPECT_LT(ReadMetrics(training / "run").evals.back().second, ReadMetrics(training / "run").evals.front().second);
  }
}

TEST(MixedRun, SaysHowOftenItReadsEachSource) {
  const MixedTraining training({SetWeights("3", "1")});
  const Outcome outcome = training.Run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  // 40 steps of 12; of 40,000 and 2,000 tokens 500 are held out.
  EXPECT_THAT(outcome.err, HasSubstr("  source words: 360 samples in 40 steps, 0.29 epochs of 1234\n"
                                     "  source digits: 120 samples in 40 steps, 2.61 epochs of 46\n"));
  const Training one_stream;
  EXPECT_THAT(one_stream.Run().err, Not(HasSubstr("source")));
}

TEST(MixedRun, OtherWeightsAreAnotherRun) {
  const MixedTraining training;
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  const auto before = ContentsOf(training / "run/checkpoints");
  struct Row {
    std::string set;
    std::string says;
  };
  for (const Row& row : std::vector<Row>{
           {SetWeights("0.8", "if step < 10 then 0 else 0.3"),
            "the weight of words is 0.9 - 0.4 * step / steps in the checkpoint, 0.8 in this run; put it back"},
           {"data.source=[{name=\"words\", tokens=[\"tokens.bin\"], weight=1}]",
            "the weight of digits is if step < 10 then 0 else 0.3 in the checkpoint, 0 in this run"},
           {"data.source=[{name=\"words\", tokens=[\"digits.bin\"], weight=\"0.9 - 0.4 * step / steps\"}, "
            "{name=\"digits\", tokens=[\"digits.bin\"], weight=\"if step < 10 then 0 else 0.3\"}]",
            "the token stream of words is 1 file, 40000 tokens, xxh3-128 "},
           // Weights over `steps`: what is done was done by those of 20.
           {"train.steps=40",
            "train.steps is 20 in the checkpoint, 40 in this run, and with it the weights of the sources give "
            "step "}}) {
    const Outcome outcome = training.Run("run", {row.set});
    EXPECT_EQ(outcome.status, 5) << row.set;
    EXPECT_THAT(outcome.err, HasSubstr(row.says));
  }
  EXPECT_EQ(ContentsOf(training / "run/checkpoints"), before);
  WriteText(training / "tiny.toml", std::string(TinyRecipe()));
  EXPECT_THAT(training.Run("run", {"data.eval_tokens=500"}).err,
              HasSubstr("what is read is words, digits in the checkpoint, one stream in this run"));
}

TEST(MixedRun, SourcesMayBeAddedBeforeTheyAreReadAndDroppedAfter) {
  const MixedTraining training;
  const std::string words = "data.source=[{name=\"words\", tokens=[\"tokens.bin\"], weight=\"0.9\"}]";
  const std::string both = SetWeights("0.9", "if step < 20 then 0 else 0.3");
  ASSERT_EQ(training.Run("whole", {both}).status, 0);
  ASSERT_EQ(training.Run("run", {words, "train.steps=20"}).status, 0);
  const Outcome rest = training.Run("run", {both});
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameSteps(ReadMetrics(training / "run"), ReadMetrics(training / "whole"));
  // One that was read cannot be dropped, and one that was not can.
  EXPECT_THAT(training.Run("run", {words}).err, HasSubstr("the weight of digits is if step < 20 then 0 else 0.3 in the "
                                                          "checkpoint, 0 in this run"));
  std::filesystem::remove_all(training / "whole/checkpoints/step-00000040");
  ASSERT_EQ(training.Run("whole", {words}).status, 0);
  ASSERT_EQ(training.Run("alone", {words}).status, 0);
  ExpectSameSteps(ReadMetrics(training / "whole"), ReadMetrics(training / "alone"));
}

TEST(MixedRun, WeightsMayChangeForLaterSteps) {
  const MixedTraining training;
  const std::string constant = SetWeights("0.9", "0.3");
  const std::string changed = SetWeights("if step < 20 then 0.9 else 0.1", "0.3");
  ASSERT_EQ(training.Run("whole", {changed}).status, 0);
  ASSERT_EQ(training.Run("run", {constant, "train.steps=20"}).status, 0);
  const Outcome rest = training.Run("run", {changed});
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("changed since step 20:"));
  EXPECT_THAT(rest.err, HasSubstr("weight = 0.9"));
  EXPECT_THAT(rest.err, HasSubstr("weight = \"if step < 20 then 0.9 else 0.1\""));
  ExpectSameSteps(ReadMetrics(training / "run"), ReadMetrics(training / "whole"));
  // By now the weights have taken other samples.
  const Outcome back = training.Run("run", {constant, "train.steps=60"});
  EXPECT_EQ(back.status, 5);
  EXPECT_THAT(back.err,
              HasSubstr("the weight of words is if step < 20 then 0.9 else 0.1 in the checkpoint, 0.9 in this "
                        "run; put it back"));
}

TEST(MixedRun, LongerRunGoesOnWhereItsWeightsSayTheSame) {
  const MixedTraining training({SetWeights("if step < 15 then 1 else 0.5", "0.3")});
  ASSERT_EQ(training.Run("whole").status, 0);
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  const Outcome rest = training.Run();
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameSteps(ReadMetrics(training / "run"), ReadMetrics(training / "whole"));
}

/// The sequences of each step, over all ranks, sorted.
auto SamplesOf(const Plan& plan, int64_t steps) -> std::vector<std::vector<std::vector<int32_t>>> {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  std::vector<std::vector<std::vector<int32_t>>> samples(static_cast<size_t>(steps));
  std::mutex mutex;
  const auto code = LaunchRunners(plan, {}, [&](RankContext& context, RankRunner& runner) -> ErrorOr<ExitCode> {
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Constants));
    RETURN_IF_ERROR(runner.RunSection(SectionKind::Init));
    const bool is_first_of_tp = plan.mesh.CoordinatesOf(context.rank)[static_cast<size_t>(Axis::Tp)] == 0;
    for (auto& of_step : samples) {
      runner.after_data() = [&] {
        const std::lock_guard lock(mutex);
        for (const Op& op : plan.section(SectionKind::Data).ops) {
          const auto* load = op.As<op::LoadTokens>();
          for (int64_t repeat = 0; load != nullptr && is_first_of_tp && repeat < plan.run.accumulate; ++repeat) {
            const auto* tokens = runner.ViewOf(load->tokens).At<const int32_t>({.repeat = repeat});
            for (int64_t b = 0; b < plan.run.micro_batch; ++b) {
              std::vector<int32_t>& sample = of_step.emplace_back();
              for (int64_t s = 0; s < plan.data.seq; ++s) {
                sample.push_back(tokens[s * plan.run.micro_batch + b]);
              }
            }
          }
        }
      };
      const auto halt = runner.Step();
      if (!halt) {
        return halt.error();
      }
    }
    return ExitCode::Ok;
  });
  EXPECT_TRUE(code.ok() && *code == ExitCode::Ok);
  for (auto& of_step : samples) {
    std::sort(of_step.begin(), of_step.end());
  }
  return samples;
}

TEST(MixedRun, EveryMeshTakesTheSameSamples) {
  for (const char* order : {"shuffled", "sequential"}) {
    const MixedTraining training({fmt::format("data.order={}", order)});
    constexpr int64_t Steps = 14;
    const auto one = SamplesOf(training.Compile({"mesh.dp=1"}), Steps);
    for (const Sets& mesh : std::vector<Sets>{{"mesh.dp=2"},
                                              {"mesh.dp=1", "batch.accumulate=4"},
                                              {"mesh.dp=3", "batch.accumulate=2"},
                                              {"mesh.dp=2", "mesh.tp=2"},
                                              {"mesh.replicate=2", "mesh.dp=2"}}) {
      EXPECT_EQ(SamplesOf(training.Compile(mesh), Steps), one)
          << order << ", " << fmt::format("{}", fmt::join(mesh, " "));
    }
    // Digits come from step 10 on.
    for (size_t step = 0; step < one.size(); ++step) {
      const auto num_digits = std::count_if(one[step].begin(), one[step].end(),
                                            [](const auto& sample) { return sample[0] < 'a' && sample[0] != ' '; });
      EXPECT_EQ(num_digits > 0, step >= 10) << step;
    }
  }
}

TEST(MixedRun, AnotherMeshContinuesTheSameRun) {
  const MixedTraining training;
  ASSERT_EQ(training.Run("whole").status, 0);
  const Metrics whole = ReadMetrics(training / "whole");
  ASSERT_EQ(training.Run("run", {"mesh.dp=1"}).status, 0);
  std::filesystem::remove_all(training / "run/checkpoints/step-00000040");
  const Outcome rest = training.Run("run", {"mesh.dp=3"});
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("at step 20\n"));
  const Metrics metrics = ReadMetrics(training / "run");
  ASSERT_EQ(metrics.steps.size(), 40U);
  for (const size_t i : {20U, 39U}) {
    EXPECT_NEAR(metrics.steps[i].loss, whole.steps[i].loss, 1e-3 * whole.steps[i].loss) << "step " << i + 1;
  }
}

// A weight may have no value at a step that the recipe's check passed over: then the run does not begin.
// A stage finds the sources of the one before by their names.
TEST(MixedRun, StageHasSourcesInAnyOrder) {
  const MixedTraining training({"train.steps=20"});
  ASSERT_EQ(training.Run("first").status, 0);
  const Outcome second = training.Run("second", {"start.run_id=second", "train.steps=2",
                                                 "data.source=[{name=\"digits\", tokens=[\"digits.bin\"], weight=1}, "
                                                 "{name=\"words\", tokens=[\"tokens.bin\"], weight=1}]",
                                                 "start.first={ continue = \"first\", reset = [\"schedule\"] }"});
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("the data go on after 240 samples"));
  const auto manifest = ManifestFromText(ReadText(training / "second/checkpoints/step-00000002/manifest.json"));
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->data.sources[0].name, "digits");
  EXPECT_LT(manifest->data.first_samples[0], manifest->data.first_samples[1]);
}

TEST(MixedRun, FaultyWeightsOfAPlanEndTheStart) {
  const MixedTraining training;
  const Plan plan = training.Compile();
  const std::string text =
      Edited(PrintPlan(plan), {{"weight=\"if step < 10 then 0 else 0.3\"", "weight=\"1 - step / 30\""},
                               {"weight = \\\"if step < 10 then 0 else 0.3\\\"", "weight = \\\"1 - step / 30\\\""}});
  WriteText(training / "edited.plan", text);
  const Outcome outcome =
      RunProcess({SHARDC_BINARY_DIR "/shardc", "run", training / "edited.plan", "--run-dir", training / "edited"});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the weight of digits at step 31 is -0.0333"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("step 1/40")));
}

}  // namespace
}  // namespace shardc
