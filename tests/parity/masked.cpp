// Targets that do not count: the loss is the sum over valid targets by their number over all ranks and microbatches.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

using Mask = std::function<void(int64_t rank, std::span<int32_t> targets)>;

static auto MaskThird(int64_t rank, std::span<int32_t> targets) -> void {
  std::mt19937_64 bits(static_cast<uint64_t>(rank));
  for (int32_t& target : targets) {
    target = bits() % 3 == 0 ? -1 : target;
  }
}

static auto MaskAll(std::span<int32_t> targets) -> void { std::fill(targets.begin(), targets.end(), -1); }

/// One of three microbatches.
static auto MaskMicrobatch(std::span<int32_t> targets, size_t index) -> void {
  MaskAll(targets.subspan(targets.size() / 3 * index, targets.size() / 3));
}

struct MaskedRow {
  const char* name;
  std::vector<std::string> sets;
  Mask mask;
};
static const std::vector<MaskedRow> MaskedRows{
    {"a third masked", {"batch.accumulate=3"}, MaskThird},
    {"a third masked, dp 3", {"mesh.dp=3"}, MaskThird},
    {"rank 0 of 2 without a target",
     {"mesh.dp=2"},
     [](int64_t rank, std::span<int32_t> targets) { rank == 0 ? MaskAll(targets) : MaskThird(rank, targets); }},
    {"rank 2 of 3 without a target, accumulate 3",
     {"mesh.dp=3", "batch.accumulate=3"},
     [](int64_t rank, std::span<int32_t> targets) {
       if (rank == 2) {
         MaskAll(targets);
       }
     }},
    {"first microbatch without a target",
     {"batch.accumulate=3"},
     [](int64_t, std::span<int32_t> targets) { MaskMicrobatch(targets, 0); }},
    {"last microbatch without a target, dp 2",
     {"mesh.dp=2", "batch.accumulate=3"},
     [](int64_t, std::span<int32_t> targets) { MaskMicrobatch(targets, 2); }},
    {"ten targets in all, on rank 1 of 2",
     {"mesh.dp=2", "batch.accumulate=3"},
     [](int64_t rank, std::span<int32_t> targets) { MaskAll(rank == 1 ? targets.subspan(10) : targets); }},
};

TEST(Masked, GradientsEqualAutograd) {
  for (const MaskedRow& row : MaskedRows) {
    ExpectAutograd(row.name, RunTraining({.name = row.name, .sets = row.sets, .mask = row.mask}));
  }
}

// Nothing to learn from: the loss is the mean of nothing, NaN; gradients are zero, finite, and the update is made, so
// that parameters decay and nothing else happens to them.
TEST(Masked, NothingValidGivesZeroGradients) {
  constexpr double Lr = 0.01;
  constexpr double Decay = 0.1;
  const TrainingRun run =
      RunTraining({.name = "nothing valid",
                   .sets = {"mesh.dp=2", "batch.accumulate=2", "optimizer.lr=0.01", "optimizer.weight_decay=0.1"},
                   .steps = 2,
                   .mask = [](int64_t, std::span<int32_t> targets) { MaskAll(targets); }});
  EXPECT_TRUE(std::isnan(run.losses[0]));
  EXPECT_EQ(run.grad_norms[0], 0);
  EXPECT_EQ(run.num_nonfinite, 0);
  const auto kept = static_cast<float>(1 - Lr * Decay);
  for (const auto& [name, gradient] : run.gradients) {
    EXPECT_EQ(gradient, Numbers(gradient.size(), 0)) << name;
    Numbers decayed = run.initial.at(name);
    for (double& number : decayed) {
      const float once = static_cast<float>(number) * kept;
      number = static_cast<double>(once * kept);
    }
    EXPECT_TRUE(SameBits(run.parameters.at(name), decayed)) << name;
  }
}

}  // namespace shardc
