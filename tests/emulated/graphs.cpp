// Steps on emulated GPUs whose launches are repeated as graphs: the bits of steps whose kernels launch one by one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {
namespace {

struct Counts {
  int64_t graphs = 0;
  int64_t turns = 0;
};

/// Trains with graphs, and without. Expects the same bits. Returns what graphs did.
auto ExpectSameBits(const Training& training, const Sets& sets, const std::string& name) -> Counts {
  const Plan plan = training.Compile(OnGpu(sets));
  EXPECT_EQ(TrainInOrder(plan, training / (name + "-plain")).code, ExitCode::Ok);
  EmulatedGraphLog().recorded = EmulatedGraphLog().turns = 0;
  const TrainedRun run =
      TrainInProcess(plan, training / (name + "-graphs"), [](RankContext& context) { context.options.graphs = true; });
  EXPECT_EQ(run.code, ExitCode::Ok) << run.error;
  ExpectSameRun(training / (name + "-graphs"), training / (name + "-plain"));
  return {EmulatedGraphLog().recorded, EmulatedGraphLog().turns};
}

TEST(EmulatedGraphs, StepsHaveTheSameBits) {
  UseEmulatedCuda();
  const SmallTraining training;
  const std::vector<Sets> rows{{},
                               {"precision.compute=bf16", "precision.master=bf16"},
                               {"batch.global=8", "batch.micro=2"},
                               {"optimizer.name=sgd", "optimizer.momentum=0.9"},
                               {"recompute.policy=full"},
                               {"train.on_spike=skip", "train.spike_window=2", "train.spike_sigma=0.001"},
                               {"mesh.dp=2", "mesh.tp=2"}};
  for (size_t i = 0; i < rows.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(rows[i]));
    const Counts counts = ExpectSameBits(training, rows[i], fmt::format("run{}", i));
    // Three steps: the first launches op by op, the second records, and the third repeats.
    EXPECT_GT(counts.graphs, 0);
    EXPECT_EQ(counts.turns % 2, 0);
    EXPECT_GE(counts.turns, 2 * 20);
  }
}

TEST(EmulatedGraphs, OpsOfHostScalarsAreLeftOut) {
  UseEmulatedCuda();
  const SmallTraining training;
  EmulatedGraphLog().ops.clear();
  ExpectSameBits(training, {"optimizer.clip_norm=1"}, "adamw");
  ExpectSameBits(training, {"optimizer.name=sgd", "mesh.dp=2"}, "sgd");
  const std::set<std::string>& ops = EmulatedGraphLog().ops;
  for (const char* op : {"matmul", "sum_squares"}) {
    EXPECT_TRUE(ops.contains(op)) << op;
  }
  for (const char* op : {"adamw", "sgd", "read_scalar", "control", "increment", "all_gather", "reduce_scatter"}) {
    EXPECT_FALSE(ops.contains(op)) << op;
  }
}

TEST(EmulatedGraphs, PassesOfLoopHaveTheirOwn) {
  UseEmulatedCuda();
  const SmallTraining training;
  const Counts one = ExpectSameBits(training, {"batch.global=2", "batch.micro=2"}, "one");
  const Counts four = ExpectSameBits(training, {"batch.global=8", "batch.micro=2"}, "four");
  EXPECT_GT(four.graphs, one.graphs);
  EXPECT_GT(four.turns, 3 * one.turns);
}

TEST(EmulatedGraphs, GuardAndChecksLaunchOneByOne) {
  UseEmulatedCuda();
  const SmallTraining training;
  for (const char* key : {"run.guard=true", "run.device_checks=true"}) {
    EXPECT_EQ(ExpectSameBits(training, {key}, key).graphs, 0) << key;
  }
}

}  // namespace
}  // namespace shardc
