// Frozen parameters: they keep their bits, the rest has the gradients of LibTorch's autograd, and only that is in the
// norm.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "compiler/base/glob.h"
#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

struct FrozenRow {
  const char* name;
  std::vector<std::string> frozen;
  bool tied;
  std::vector<std::string> sets;
};
static const std::vector<FrozenRow> FrozenRows{
    {"embedding and first block", {"model.embed_tokens.weight", "model.layers.0.*"}, false, {}},
    {"embedding and first block, dp 2, recompute",
     {"model.embed_tokens.weight", "model.layers.0.*"},
     false,
     {"mesh.dp=2", "recompute.policy=full"}},
    {"norms, dp 3, accumulate 2", {"*norm.weight"}, false, {"mesh.dp=3", "batch.accumulate=2"}},
    {"all but the head, chunks, dp 2", {"model.*"}, false, {"mesh.dp=2", "loss.chunks=3"}},
    {"the head, dp 2", {"lm_head.weight"}, false, {"mesh.dp=2"}},
    {"tied embedding, chunks", {"model.embed_tokens.weight"}, true, {"loss.chunks=3"}},
    {"all but the embedding, accumulate 3",
     {"model.layers.*", "model.norm.*", "lm_head.*"},
     false,
     {"batch.accumulate=3"}},
    {"queries, gates, and what is below, dp 2, blocks:2",
     {"*.q_proj.weight", "*.gate_proj.weight", "model.embed*", "model.layers.0.input*"},
     false,
     {"mesh.dp=2", "shard.units=\"blocks:2\"", "shard.reshard_after_forward=true", "shard.prefetch_backward=1"}},
    {"keys and values of the first block, dp 2, size",
     {"model.embed*", "model.layers.0.input*", "model.layers.0.self_attn.k*", "model.layers.0.self_attn.v*"},
     false,
     {"mesh.dp=2", "shard.units=\"size:20 KiB\"", "shard.gather_into=host"}},
};

static auto IsFrozen(const FrozenRow& row, const std::string& parameter) -> bool {
  for (const std::string& glob : row.frozen) {
    if (GlobMatches(glob, parameter)) {
      return true;
    }
  }
  return false;
}

static auto Train(const FrozenRow& row, int64_t steps, const std::vector<std::string>& more = {}) -> TrainingRun {
  TrainingCase training_case{.name = row.name, .tied = row.tied, .sets = row.sets, .steps = steps};
  training_case.sets.push_back(fmt::format("optimizer.frozen=[\"{}\"]", fmt::join(row.frozen, "\", \"")));
  training_case.sets.insert(training_case.sets.end(), more.begin(), more.end());
  return RunTraining(training_case);
}

static auto Trained(const FrozenRow& row, NamedNumbers tensors) -> NamedNumbers {
  std::erase_if(tensors, [&](const auto& tensor) { return IsFrozen(row, tensor.first); });
  return tensors;
}

TEST(Frozen, TheOthersHaveTheGradientsOfAutograd) {
  for (const FrozenRow& row : FrozenRows) {
    const TrainingRun run = Train(row, 1);
    const LossAndGradients f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
    const LossAndGradients f32 = TorchGradients(Precision::F32, run.shape, run.initial, run.batches[0]);
    EXPECT_NEAR(run.losses[0], f64.loss, LossTolerance * f64.loss) << row.name;
    const NamedNumbers gradients = Trained(row, run.gradients);
    const NamedNumbers expected = Trained(row, f64.gradients);
    ExpectClose(row.name, gradients, expected, Trained(row, f32.gradients), expected, GradientTolerance);
    double squares = 0;
    for (const auto& [name, numbers] : gradients) {
      for (const double number : numbers) {
        squares += number * number;
      }
    }
    EXPECT_NEAR(run.grad_norms[0], std::sqrt(squares), 1e-12 * std::sqrt(squares)) << row.name;
  }
}

TEST(Frozen, KeepTheirBitsWhileTheOthersMove) {
  for (const FrozenRow& row : FrozenRows) {
    for (const char* compute : {"precision.compute=fp32", "precision.compute=bf16"}) {
      const TrainingRun run = Train(row, 3, {compute});
      for (const auto& [name, numbers] : run.parameters) {
        EXPECT_EQ(SameBits(numbers, run.initial.at(name)), IsFrozen(row, name)) << row.name << ": " << name;
        EXPECT_EQ(std::isnan(run.exp_avg.at(name)[0]), IsFrozen(row, name)) << row.name << ": " << name;
      }
    }
  }
}

// A gradient does not depend on who else gets one.
TEST(Frozen, GradientsAreTheBitsOfTrainingAll) {
  for (const FrozenRow& row : FrozenRows) {
    const TrainingCase everything{.name = row.name, .tied = row.tied, .sets = row.sets};
    const NamedNumbers expected = Trained(row, RunTraining(everything).gradients);
    EXPECT_TRUE(SameBits(Trained(row, Train(row, 1).gradients), expected)) << row.name;
  }
}

}  // namespace shardc
