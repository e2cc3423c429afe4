// Steps of plans for a GPU, whose kernels are emulated: the losses of the same recipe on the CPU, and the same bits in
// another order of warps.
#include <gtest/gtest.h>

#include <bit>

#include "tests/run/in_process.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/training.h"
#include "tests/support/warp_order.h"

namespace shardc {

static auto NumbersOf(const InProcessRun& run) -> std::vector<double> {
  std::vector<double> numbers;
  for (const uint64_t bits : run.numbers) {
    numbers.push_back(std::bit_cast<double>(bits));
  }
  return numbers;
}

/// Expects the numbers of each step within `relative` of the CPU's.
static auto ExpectTrainsAsTheCpu(const Sets& sets, double relative) -> void {
  constexpr int64_t Steps = 5;
  UseEmulatedCuda();
  Sets all{"mesh.dp=1"};
  all.insert(all.end(), sets.begin(), sets.end());
  const Training training(all);
  const InProcessRun expected = RunInProcess(training.Compile(), Steps);
  const Plan plan = training.Compile({"run.device=\"cuda-sm90\""});
  emulated::warp_order = emulated::WarpOrder::Ascending;
  const InProcessRun run = RunInProcess(plan, Steps);
  ASSERT_EQ(run.code, ExitCode::Ok) << run.errors[0];
  const std::vector<double> numbers = NumbersOf(run);
  const std::vector<double> on_cpu = NumbersOf(expected);
  ASSERT_EQ(numbers.size(), on_cpu.size());
  for (size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_NEAR(numbers[i], on_cpu[i], relative * on_cpu[i]) << i;
  }
  emulated::warp_order = emulated::WarpOrder::Descending;
  EXPECT_TRUE(run.SameBits(RunInProcess(plan, Steps)));
}

TEST(EmulatedGpu, BeginsWithBitsOfTheCpu) {
  UseEmulatedCuda();
  const Training training({"mesh.dp=1", "train.eval_every=0"});
  const InProcessRun run = RunInProcess(training.Compile({"run.device=\"cuda-sm90\""}), 0);
  EXPECT_EQ(run.code, ExitCode::Ok) << run.errors[0];
  EXPECT_EQ(run.states, RunInProcess(training.Compile(), 0).states);
}

TEST(EmulatedGpu, LosesAsTheCpuInF32) { ExpectTrainsAsTheCpu({}, 1e-5); }

TEST(EmulatedGpu, LosesAsTheCpuInBf16) { ExpectTrainsAsTheCpu({"precision.compute=\"bf16\""}, 1e-2); }

TEST(EmulatedGpu, LosesAsTheCpuWithMoreFeatures) {
  ExpectTrainsAsTheCpu(
      {"model.family=\"qwen3\"", "model.head_dim=16", "batch.micro=4", "recompute.policy=\"full\"", "loss.chunks=2"},
      1e-5);
}

}  // namespace shardc
