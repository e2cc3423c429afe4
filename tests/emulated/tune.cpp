// `--tune` of whole runs on emulated GPUs, whose products have times that are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/launch/launch.h"
#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;
using Texts = std::map<std::string, std::string>;

/// Sets the versions and the products of the family for as long as it lives.
class TunedFamily {
 public:
  TunedFamily() {
    UseEmulatedCuda();
    EmulatedVersions() = {{"card", "NVIDIA H100"}, {"cublaslt", "13.1.0"}};
    EmulatedProducts() = {
        {.product = {.text = "a", .algorithms = {"a0", "a1"}}, .times = {Seconds{2e-3}, Seconds{1e-3}}},
        {.product = {.text = "b", .algorithms = {"b0", "b1"}}, .times = {Seconds{2e-3}, Seconds{1.99e-3}}}};
  }
  TunedFamily(const TunedFamily&) = delete;
  ~TunedFamily() {
    EmulatedVersions().clear();
    EmulatedProducts().clear();
  }
};

auto TrainTuned(const Plan& plan, const std::string& run_dir, const TuneRequest& tune) -> TrainedRun {
  return TrainInProcess(plan, run_dir, [&](RankContext& context) { context.options.tune = tune; });
}

auto AlgorithmsOf(const std::string& run_dir) -> Texts {
  return ProductRecordIn(ReadText(run_dir + "/gemm.json"))->algorithms;
}

TEST(EmulatedTune, RestartUsesWhatWasMeasured) {
  const TunedFamily family;
  const SmallTraining training;
  const std::string run_dir = training / "run";
  const Plan plan = training.Compile(OnGpu({"mesh.dp=2", "train.steps=2"}));
  const TrainedRun first = TrainTuned(plan, run_dir, {.measures = true, .file = ""});
  ASSERT_EQ(first.code, ExitCode::Ok) << first.error;
  EXPECT_EQ(AlgorithmsOf(run_dir), (Texts{{"a", "a1"}, {"b", "b0"}}));
  EXPECT_THAT(ReadText(run_dir + "/gemm.json"), HasSubstr("\"tuned\": true"));
  EXPECT_THAT(ReadText(run_dir + "/attempts/0001/log.txt"),
              testing::ContainsRegex("2 products measured in [0-9.]+ s, 1 by another algorithm"));
  // Now the other one would be faster.
  EmulatedProducts()[0].times = {Seconds{1e-3}, Seconds{2e-3}};
  for (const int64_t steps : {3, 4}) {
    const Plan longer = training.Compile(OnGpu({"mesh.dp=2", fmt::format("train.steps={}", steps)}));
    const TrainedRun next = TrainTuned(longer, run_dir, {.measures = steps == 3, .file = ""});
    ASSERT_EQ(next.code, ExitCode::Ok) << next.error;
    EXPECT_EQ(AlgorithmsOf(run_dir), (Texts{{"a", "a1"}, {"b", "b0"}}));
    EXPECT_THAT(ReadText(fmt::format("{}/attempts/{:04}/log.txt", run_dir, steps - 1)), Not(HasSubstr("gemm.json")));
  }
}

TEST(EmulatedTune, NamedFileIsTakenOrRefused) {
  const TunedFamily family;
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"mesh.dp=2", "train.steps=2"}));
  ASSERT_EQ(TrainTuned(plan, training / "measured", {.measures = true, .file = ""}).code, ExitCode::Ok);
  const TuneRequest named{.measures = false, .file = training / "measured/gemm.json"};
  ASSERT_EQ(TrainTuned(plan, training / "named", named).code, ExitCode::Ok);
  EXPECT_EQ(ReadText(training / "named/gemm.json"), ReadText(named.file));

  EmulatedVersions()["card"] = "NVIDIA H200";
  const TrainedRun other = TrainTuned(plan, training / "other", named);
  EXPECT_EQ(other.code, ExitCode::Environment);
  EXPECT_THAT(other.error, HasSubstr("its algorithms are not for this machine: card NVIDIA H200, was NVIDIA H100"));
  const TrainedRun none = TrainTuned(plan, training / "none", {.measures = false, .file = training / "none.json"});
  EXPECT_EQ(none.code, ExitCode::Usage);
  EXPECT_THAT(none.error, HasSubstr("none.json: "));
}

TEST(EmulatedTune, MeasurementMayOutlastTimeout) {
  const TunedFamily family;
  for (TimedProduct& product : EmulatedProducts()) {
    product.lasts = std::chrono::milliseconds(150);
  }
  const SmallTraining training;
  const Plan plan = training.Compile(OnGpu({"mesh.dp=2"}));
  const auto code = LaunchThreads(plan, {.timeout = Seconds{2}}, [](RankContext& context) -> ErrorOr<ExitCode> {
    context.options.tune.measures = true;
    const auto runner = RankRunner::Create(context);
    return runner ? ErrorOr<ExitCode>(ExitCode::Ok) : runner.error();
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, ExitCode::Ok);
}

TEST(EmulatedTune, OtherAlgorithmsAtResumeAreSaid) {
  const TunedFamily family;
  const SmallTraining training;
  const std::string run_dir = training / "run";
  const auto plan = [&](int steps) { return training.Compile(OnGpu({fmt::format("train.steps={}", steps)})); };
  ASSERT_EQ(TrainTuned(plan(2), run_dir, {.measures = true, .file = ""}).code, ExitCode::Ok);
  EmulatedProducts()[0].times = {Seconds{1e-3}, Seconds{2e-3}};
  ASSERT_EQ(TrainTuned(plan(2), training / "other", {.measures = true, .file = ""}).code, ExitCode::Ok);
  ASSERT_EQ(TrainTuned(plan(3), run_dir, {.measures = false, .file = training / "other/gemm.json"}).code, ExitCode::Ok);
  EXPECT_EQ(AlgorithmsOf(run_dir), (Texts{{"a", "a0"}, {"b", "b0"}}));
  EXPECT_THAT(ReadText(run_dir + "/attempts/0002/log.txt"),
              HasSubstr("warning: not as in attempt 0001, which saved the last checkpoint: gemm.json "));
}

}  // namespace
}  // namespace shardc
