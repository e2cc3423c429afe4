// Steps of plans for a GPU, whose kernels are emulated: the losses of the same recipe on the CPU, and the same bits in
// another order of warps.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>

#include "runtime/core/check_state.h"
#include "runtime/launch/launch.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/in_process.h"
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

TEST(EmulatedGpu, FindsStateThatIsNotFinite) {
  UseEmulatedCuda();
  const Training training({"mesh.dp=1"});
  const Plan plan = training.Compile({"run.device=\"cuda-sm90\"", "precision.compute=\"bf16\""});
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    RETURN_IF_ERROR((*runner)->RunSection(SectionKind::Init));
    Binder& binder = (*runner)->binder();
    const SubVector& sub_vector = plan.sub_vectors[SubVectorId{1}];
    for (const ValueId vector : {sub_vector.shard, sub_vector.compute_copy}) {
      const auto before = FindBadState(binder, StateRoles);
      EXPECT_TRUE(before.ok() && !before->has_value());
      const View view = binder.ViewOf(vector);
      const int64_t size = SizeOf(view.dtype);
      std::byte* const last = view.base + (sub_vector.segments.front().end - 1) * size;
      HostScratch scratch;
      Queue& queue = binder.device().queue(Stream::Compute);
      for (const auto bits : {std::byte{0xFF}, std::byte{0}}) {
        std::fill_n(queue.BeginWrite(last, size, scratch), size, bits);
        RETURN_IF_ERROR(queue.EndWrite(last, size, scratch));
        const auto bad = FindBadState(binder, StateRoles);
        EXPECT_EQ(bad->has_value(), bits == std::byte{0xFF});
        EXPECT_TRUE(!bad->has_value() || (*bad)->is_copy == (vector == sub_vector.compute_copy));
      }
    }
    return ExitCode::Ok;
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  EXPECT_EQ(*code, ExitCode::Ok);
}

TEST(EmulatedGpu, LosesAsTheCpuInF32) { ExpectTrainsAsTheCpu({}, 1e-5); }

TEST(EmulatedGpu, LosesAsTheCpuInBf16) { ExpectTrainsAsTheCpu({"precision.compute=\"bf16\""}, 1e-2); }

TEST(EmulatedGpu, LosesAsTheCpuWithMoreFeatures) {
  ExpectTrainsAsTheCpu(
      {"model.family=\"qwen3\"", "model.head_dim=16", "batch.micro=4", "recompute.policy=\"full\"", "loss.chunks=2"},
      1e-5);
}

}  // namespace shardc
