// Runs on emulated GPUs that stop and go on: the same bits as without the stop, also where a CPU or another mesh was
// there before or comes after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

auto With(Sets sets, const Sets& more) -> Sets {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST(EmulatedResume, TwoAndThreeStepsAreFive) {
  UseEmulatedCuda();
  const SmallTraining training;
  const std::vector<Sets> rows{
      {},
      {"precision.compute=bf16", "precision.master=bf16"},
      {"optimizer.name=sgd", "optimizer.momentum=0.9"},
      {"train.on_spike=skip", "train.spike_window=2", "train.spike_sigma=0.001", "optimizer.lr=1e-4"},
      {"mesh.dp=2", "mesh.tp=2"},
  };
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(rows[i]));
    const std::string whole = training / fmt::format("whole{}", i);
    const std::string parts = training / fmt::format("parts{}", i);
    const Plan plan = training.Compile(OnGpu(rows[i]));
    ASSERT_EQ(TrainInOrder(plan, whole).code, ExitCode::Ok);
    ASSERT_EQ(TrainInOrder(training.Compile(With(OnGpu(rows[i]), {"train.steps=2"})), parts).code, ExitCode::Ok);
    const TrainedRun rest = TrainInOtherOrder(plan, parts);
    ASSERT_EQ(rest.code, ExitCode::Ok) << rest.error;
    ExpectSameRun(parts, whole);
  }
}

TEST(EmulatedResume, CpuAndGpuContinueEachOther) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Sets one{"mesh.dp=1"};
  const Sets four{"mesh.dp=2", "mesh.tp=2"};
  const Sets copies{"mesh.replicate=2", "mesh.dp=2"};
  struct Row {
    Sets from;
    Sets to;
  };
  const std::vector<Row> rows{{one, OnGpu(one)},     {OnGpu(one), one},         {copies, OnGpu(four)},
                              {OnGpu(four), copies}, {OnGpu(one), OnGpu(four)}, {OnGpu(copies), OnGpu(one)}};
  const std::vector<Sets> kinds{{}, {"precision.compute=bf16", "precision.master=bf16"}};
  int number = 0;
  for (const Sets& kind : kinds) {
    for (const auto& [from, to] : rows) {
      SCOPED_TRACE(testing::PrintToString(With(from, to)));
      const std::string run_dir = training / fmt::format("run{}", ++number);
      const TrainedRun first = TrainInOrder(training.Compile(With(With(kind, from), {"train.steps=2"})), run_dir);
      ASSERT_EQ(first.code, ExitCode::Ok) << first.error;
      const TrainedRun second = TrainInOrder(training.Compile(With(With(kind, to), {"train.steps=3"})), run_dir);
      ASSERT_EQ(second.code, ExitCode::Ok) << second.error;
      EXPECT_EQ(second.at_begin.num_missing(), 0);
      EXPECT_EQ(second.at_begin.num_different(), 0);
      EXPECT_EQ(second.at_begin.DifferenceFrom(first.at_end), "");
      EXPECT_NE(second.at_end.DifferenceFrom(first.at_end), "");
      const Metrics metrics = ReadMetrics(run_dir);
      ASSERT_EQ(metrics.steps.size(), 3U);
    }
  }
}

}  // namespace
}  // namespace shardc
