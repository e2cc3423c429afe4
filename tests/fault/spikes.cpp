// Losses that are spikes: the update is left out on all ranks alike, the run goes on or saves and ends, and a run that
// was stopped and continued judges as one that never stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <sstream>

#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t SpikeStep = 30;

/// Easy text in order, of which step 30 alone is of ids that come nowhere else.
class Spikes : public testing::Test {
 protected:
  Spikes()
      : training_({"train.steps=40", "train.eval_every=0", "checkpoint.every=10", "data.order=sequential",
                   "train.spike_window=16", "train.spike_sigma=5", "data.eval_tokens=0"}) {
    WriteTokens(SpikeStep);
  }

  /// Makes easy text, of which steps SpikeStep to `last` are of ids that come nowhere else.
  auto WriteTokens(int64_t last) -> void {
    constexpr int64_t TokensPerStep = 12 * 32;
    std::vector<uint16_t> ids = EasyTokens(90 * TokensPerStep);
    for (int64_t i = (SpikeStep - 1) * TokensPerStep; i < last * TokensPerStep; ++i) {
      ids[static_cast<size_t>(i)] = static_cast<uint16_t>(240 + i % 7 * i % 11);
    }
    WriteBin(training_ / "tokens.bin", ids);
  }

  static auto Manifest(const std::string& run_dir, int64_t step) -> nlohmann::json {
    return nlohmann::json::parse(ReadText(run_dir + "/checkpoints/" + CheckpointNameOf(step) + "/manifest.json"));
  }
  /// Returns the steps of metrics.jsonl whose updates were left out, for this reason.
  static auto SkippedSteps(const std::string& run_dir, std::string_view why) -> std::vector<int64_t> {
    std::vector<int64_t> steps;
    std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
    for (std::string line; std::getline(text, line);) {
      const auto json = nlohmann::json::parse(line);
      if (json.value("skipped", "") == why) {
        steps.push_back(json["step"]);
      }
    }
    return steps;
  }

  Training training_;
};

TEST_F(Spikes, AreLeftOutAndTold) {
  const Outcome outcome = training_.Run("run", {"train.on_spike=skip"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("step 30: the loss "), HasSubstr(" is a spike: it lies "),
                                 HasSubstr(" the mean of the 16 losses before it; no update was made\n"),
                                 HasSubstr("step 31: the loss "),
                                 HasSubstr(" is within the limit again; 1 update was left out before it\n")));
  EXPECT_THAT(SkippedSteps(training_ / "run", "spike"), ElementsAre(SpikeStep));
  const auto manifest = Manifest(training_ / "run", 40);
  EXPECT_EQ(manifest["state"], (nlohmann::json{{"step", 40}, {"updates", 39}}));
  // The window is that of the curve, without the spike.
  const Metrics metrics = ReadMetrics(training_ / "run");
  ASSERT_EQ(metrics.steps.size(), 40U);
  // The mean that is told is the mean of the losses that judged, those of steps 14 to 29.
  double mean = 0;
  for (size_t step = SpikeStep - 16; step < SpikeStep; ++step) {
    mean += metrics.steps[step - 1].loss / 16;
  }
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format(" standard deviations above {:.4f}, the mean of the 16", mean)));
  std::vector<double> last;
  for (size_t step = 24; step <= 40; ++step) {
    if (step != SpikeStep) {
      last.push_back(metrics.steps[step - 1].loss);
    }
  }
  EXPECT_EQ(manifest["recent_losses"].get<std::vector<double>>(), last);
}

TEST_F(Spikes, AreTrainedOnIfNobodyAsks) {
  const Outcome outcome = training_.Run("run");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, Not(HasSubstr("is a spike")));
  const auto manifest = Manifest(training_ / "run", 40);
  EXPECT_EQ(manifest["state"]["updates"], 40);
  EXPECT_FALSE(manifest.contains("recent_losses"));
}

TEST_F(Spikes, AreJudgedAlikeAfterARestart) {
  const Sets skip{"train.on_spike=skip"};
  ASSERT_EQ(training_.Run("whole", skip).status, 0);
  // Stopped at step 25, when the window holds losses from before and after the last save.
  ASSERT_EQ(training_.Run("parts", {"train.on_spike=skip", "train.steps=25"}).status, 0);
  const Outcome rest = training_.Run("parts", skip);
  ASSERT_EQ(rest.status, 0) << rest.err;
  EXPECT_THAT(rest.err, HasSubstr("at step 25\n"));
  EXPECT_THAT(SkippedSteps(training_ / "parts", "spike"), ElementsAre(SpikeStep));
  ExpectSameRun(training_ / "whole", training_ / "parts");
}

TEST_F(Spikes, StopTheRunWithASave) {
  const Sets stop{"train.on_spike=stop"};
  const Outcome outcome = training_.Run("run", stop);
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err,
              AllOf(HasSubstr("no update was made\n"), HasSubstr("the run saves and ends, as `train.on_spike` asks"),
                    HasSubstr("step 30: saved ")));
  EXPECT_EQ(Manifest(training_ / "run", SpikeStep)["state"], (nlohmann::json{{"step", 30}, {"updates", 29}}));
  const Outcome again = training_.Run("run", stop);
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(Manifest(training_ / "run", 40)["state"]["updates"], 39);
  // What stops and goes on is what skips.
  ASSERT_EQ(training_.Run("skips", {"train.on_spike=skip"}).status, 0);
  ExpectSameSteps(ReadMetrics(training_ / "run"), ReadMetrics(training_ / "skips"));
}

TEST_F(Spikes, OneAfterAnotherEndTheRun) {
  // Every loss above the mean is a spike.
  const Outcome outcome = training_.Run("run", {"train.on_spike=skip", "train.max_skipped=1", "train.spike_sigma=0.001",
                                                "train.spike_window=2", "optimizer.lr=0.3"});
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 updates left out one after another, more than `train.max_skipped` allows: the "
                                     "run saves and ends\n"));
  EXPECT_THAT(outcome.err, HasSubstr(": saved "));
}

TEST_F(Spikes, LossThatStaysEndsRun) {
  // The update of step 101 breaks the model for good. All keys of spikes have their defaults.
  const Training training({"train.steps=200", "train.eval_every=0", "data.eval_tokens=0", "train.on_spike=skip",
                           "optimizer.clip_norm=0", "optimizer.lr=\"if step == 100 then 30 else 1e-5\""});
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_THAT(SkippedSteps(training / "run", "spike"),
              ElementsAre(102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112));
  EXPECT_THAT(outcome.err, HasSubstr("step 112: 11 updates left out one after another, more than `train.max_skipped` "
                                     "allows: the run saves and ends\n  if the loss has a new level, run again with"));
  EXPECT_EQ(Manifest(training / "run", 112)["state"], (nlohmann::json{{"step", 112}, {"updates", 101}}));
}

TEST_F(Spikes, NewLevelIsAccepted) {
  WriteTokens(90);
  const Sets skip{"train.on_spike=skip", "train.steps=80"};
  const Outcome outcome = training_.Run("run", skip);
  ASSERT_EQ(outcome.status, 7) << outcome.err;
  EXPECT_EQ(ReadMetrics(training_ / "run").last_step(), SpikeStep + 10);
  // What the message says.
  constexpr std::string_view Key = "run again with `train.spike_sigma = ";
  const size_t at = outcome.err.find(Key);
  ASSERT_NE(at, std::string::npos) << outcome.err;
  const std::string sigma =
      outcome.err.substr(at + Key.size(), outcome.err.find('`', at + Key.size()) - at - Key.size());
  const Outcome accepted = training_.Run("run", {skip[0], "train.steps=60", "train.spike_sigma=" + sigma});
  EXPECT_EQ(accepted.status, 0) << accepted.err;
  // The window knows the new level by now.
  const Outcome rest = training_.Run("run", skip);
  EXPECT_EQ(rest.status, 0) << rest.err;
  EXPECT_EQ(SkippedSteps(training_ / "run", "spike").size(), 11U);
  EXPECT_EQ(Manifest(training_ / "run", 80)["state"]["updates"], 80 - 11);
}

TEST_F(Spikes, OfOneRankAreThoseOfAll) {
  static const auto kernels = SharedInitKernels();
  const Plan plan = training_.Compile({"train.on_spike=skip", "train.steps=12"});
  std::atomic<int> agreed = 0;
  const auto result =
      LaunchThreads(plan, {.run_dir = training_ / "run"}, [&](RankContext& context) -> ErrorOr<ExitCode> {
        // Rank 1 alone reads a wrong loss before it meets the others.
        context.execution.wrap = [&](SectionKind section, size_t index, Kernel kernel) -> Kernel {
          const Op& op = plan.section(section).ops[index];
          if (op.kind() != OpKind::Control || context.rank != 1) {
            return kernel;
          }
          return [&, kernel = std::move(kernel)](const Moment& moment) {
            if (moment.step == 11) {
              context.device->scalars()[plan.ScalarOf(ScalarRole::Loss)] = 1e6;
            }
            return kernel(moment);
          };
        };
        auto created = RankRunner::Create(context);
        RETURN_IF_ERROR(created);
        RETURN_IF_ERROR((*created)->Begin());
        for (int64_t step = 1; step <= plan.run.steps; ++step) {
          const auto halt = (*created)->Step();
          RETURN_IF_ERROR(halt);
          const auto scalar = [&](ScalarRole role) { return (*created)->scalars()[plan.ScalarOf(role)]; };
          const double expected = step == 12 ? 1 : 0;
          EXPECT_EQ(scalar(ScalarRole::Spike), expected) << "rank " << context.rank << ", step " << step;
          EXPECT_EQ(scalar(ScalarRole::LeftOut), expected);
          EXPECT_EQ(scalar(ScalarRole::NonFinite), 0);
        }
        agreed += (*created)->scalars()[plan.ScalarOf(ScalarRole::Updates)] == 11 ? 1 : 0;
        return ExitCode::Ok;
      });
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(agreed, 2);
}

}  // namespace
}  // namespace shardc
