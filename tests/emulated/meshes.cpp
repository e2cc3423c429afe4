// Several emulated GPUs, one for each rank: each mesh trains as on the CPU, and every legal order gives the same bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "runtime/init/initial_values.h"
#include "tests/emulated/feature.h"
#include "tests/support/emulated/cuda.h"
#include "tests/support/shuffler.h"

namespace shardc {
namespace {

const std::vector<Feature> Meshes{
    {"dp 2", {"mesh.dp=2", "batch.micro=1", "shard.prefetch_forward=1", "shard.prefetch_backward=1"}},
    {"dp 2 x tp 2", {"mesh.dp=2", "mesh.tp=2", "batch.micro=1", "shard.prefetch_forward=1"}},
    {"dp 2 x tp 2 in bf16", {"mesh.dp=2", "mesh.tp=2", "precision.compute=bf16", "recompute.policy=full"}, InBf16},
    {"replicate 2 x dp 2, reduced after the last",
     {"mesh.replicate=2", "mesh.dp=2", "batch.global=8", "batch.micro=1", "batch.reduce=last"}},
    {"replicate 2 x dp 2", {"mesh.replicate=2", "mesh.dp=2", "batch.micro=1"}},
    {"replicate 2", {"mesh.replicate=2", "batch.micro=2"}},
    {"replicate 2 x tp 2, accumulated", {"mesh.replicate=2", "mesh.tp=2", "batch.micro=1"}},
    {"dp 3, odd slices", {"mesh.dp=3", "batch.global=6", "batch.micro=1"}},
    {"dp 4 in groups of 2",
     {"mesh.dp=4", "shard.reshard_size=2", "shard.reshard_after_forward=true", "shard.prefetch_backward=1"}},
    {"dp 2 reduced in bf16, chunks",
     {"mesh.dp=2", "precision.compute=bf16", "precision.reduce=bf16", "loss.chunks=2"},
     InBf16},
    {"tp 2, qwen3, tied, heads",
     {"mesh.tp=2", "model.family=qwen3", "model.head_dim=16", "model.tied=true",
      R"(loss.head=[{name = "next", vocab = 256, targets = ["masked.bin"], weight = 0.5}])"}},
    {"tp 2, qwen2, frozen", {"mesh.tp=2", "model.family=qwen2", R"(optimizer.frozen=["*norm.weight"])"}},
};
constexpr uint64_t NumOrders = 12;

TEST(EmulatedMeshes, TrainAsOnCpu) {
  const SmallTraining training;
  for (const Feature& mesh : Meshes) {
    ExpectTrainsAsOnCpu(training, mesh);
  }
}

TEST(EmulatedMeshes, DocumentsTrainAsOnCpu) {
  const SmallTraining training;
  for (const Feature& mesh : Meshes) {
    for (const Pack pack : {Pack::Stream, Pack::BestFit}) {
      Feature row = mesh;
      const std::string name = fmt::format("{}, documents, {}", mesh.name, ToText(pack));
      row.name = name.c_str();
      row.sets = OnDocuments(pack, mesh.sets);
      ExpectTrainsAsOnCpu(training, row);
    }
  }
}

TEST(EmulatedMeshes, EveryOrderGivesSameBits) {
  UseEmulatedCuda();
  // Compiled once for all launches, and not once per launch.
  const auto kernels = SharedInitKernels();
  const SmallTraining training;
  for (const Feature& mesh : Meshes) {
    SCOPED_TRACE(mesh.name);
    const Plan plan = training.Compile(OnGpu(mesh.sets));
    const ShuffledRuns runs = Shuffler(&plan, NumOrders, false).Run();
    EXPECT_EQ(runs.error, "");
    EXPECT_EQ(runs.num_tried, NumOrders);
    EXPECT_THAT(runs.different, testing::IsEmpty());
    // Compute waits for nearly each collective over tp.
    EXPECT_GE(runs.orders.size(), plan.mesh.size(Axis::Dp) > 1 ? NumOrders / 4 : 1);
    std::printf("%s: %zu orders of the step under %lu seeds\n", mesh.name, runs.orders.size(), NumOrders);
  }
}

}  // namespace
}  // namespace shardc
