// Families other than Llama against LibTorch: gradients of a step, and twenty steps of AdamW, on five meshes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

using Sets = std::vector<std::string>;

constexpr int64_t FamilySteps = 20;
constexpr double FamilyLr = 0.003;
constexpr double FamilyClipNorm = 0.5;
constexpr double FamilyWeightDecay = 0.1;
/// AdamW's. With 1e-8 an element whose gradient is all rounding errors moves by the whole learning rate.
constexpr double FamilyEps = 1e-6;
/// Relative, of the loss of each step.
constexpr double CurveTolerance = 1e-5;

struct FamilyRow {
  const char* family;
  /// Init rules of what Llama does not have.
  const char* tables;
};
static const FamilyRow Families[] = {
    {"qwen2", "[[init.rule]]\nmatch = \"*.bias\"\nvalue = \"normal(0, 0.5)\"\n"},
    {"qwen3", ""},
};

struct FamilyMesh {
  const char* name;
  Sets sets;
};
static const std::vector<FamilyMesh> FamilyMeshes{
    {"one rank", {}},
    {"dp 2", {"mesh.dp=2"}},
    {"tp 2", {"mesh.tp=2"}},
    {"dp 2 x tp 2", {"mesh.dp=2", "mesh.tp=2"}},
    {"replicate 2 x dp 2", {"mesh.replicate=2", "mesh.dp=2"}},
};

/// Policies of recomputation, each with another number of microbatches.
static const std::vector<Sets> FamilyPolicies{
    {"recompute.policy=none", "batch.accumulate=1"},
    {"recompute.policy=full", "batch.accumulate=3"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\", \"v_proj\", \"attention\"]", "batch.accumulate=2"},
    {"recompute.policy=torchtitan-sac", "batch.accumulate=2", "batch.reduce=last"},
};

/// With the norm_eps of the other cases of this folder, whatever the family's own default is: tolerances are multiples
/// of LibTorch's error, which is another one for each eps.
static auto FamilyCase(const FamilyRow& family, const FamilyMesh& mesh, const Sets& more) -> TrainingCase {
  TrainingCase result{
      .name = fmt::format("{}, {}, {}", family.family, mesh.name, more.empty() ? "" : more[0]),
      .sets = {"model.ffn=102", "model.seq=34", "model.norm_eps=1e-5", fmt::format("model.family={}", family.family)},
      .tables = family.tables};
  result.sets.insert(result.sets.end(), mesh.sets.begin(), mesh.sets.end());
  result.sets.insert(result.sets.end(), more.begin(), more.end());
  return result;
}

TEST(Families, GradientsEqualAutograd) {
  for (const FamilyRow& family : Families) {
    for (size_t mesh = 0; mesh < FamilyMeshes.size(); ++mesh) {
      for (size_t policy = 0; policy < FamilyPolicies.size(); ++policy) {
        TrainingCase training_case = FamilyCase(family, FamilyMeshes[mesh], FamilyPolicies[policy]);
        training_case.tied = (mesh + policy) % 2 == 1;
        ExpectAutograd(training_case.name, RunTraining(training_case));
      }
    }
  }
}

// tp that leaves each rank one head, and a kv head: what a rank has of a bias, and heads by themselves.
TEST(Families, GradientsEqualAutogradOfOneHeadPerRank) {
  for (const FamilyRow& family : Families) {
    const TrainingCase training_case =
        FamilyCase(family, {"tp 4", {"mesh.tp=4", "model.kv_heads=4", "model.ffn=104", "model.seq=36"}}, {});
    ExpectAutograd(training_case.name, RunTraining(training_case));
  }
}

TEST(Families, GradientsInBf16AreAsCloseAsLibTorchs) {
  for (const FamilyRow& family : Families) {
    for (const FamilyMesh& mesh : FamilyMeshes) {
      const TrainingCase training_case =
          FamilyCase(family, mesh, {"precision.compute=bf16", "batch.accumulate=3", "recompute.policy=full"});
      const TrainingRun run = RunTraining(training_case);
      const LossAndGradients f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
      const LossAndGradients bf16 = TorchGradients(Precision::BF16, run.shape, run.initial, run.batches[0]);
      ExpectClose(training_case.name, run.gradients, f64.gradients, bf16.gradients, f64.gradients,
                  {.floor = 0, .times = 2});
    }
  }
}

// Biases, and norms over heads, that are kept, computed and trained otherwise than the projections beside them.
TEST(Families, GradientsEqualAutogradOfUnitsOfTheirOwn) {
  const FamilyRow& qwen2 = Families[0];
  const FamilyRow& qwen3 = Families[1];
  for (const auto& [family, glob] : {std::pair(&qwen2, "*.bias"), std::pair(&qwen3, "*_norm.weight")}) {
    const TrainingCase training_case =
        FamilyCase(*family, FamilyMeshes[3],
                   {fmt::format("shard.unit=[{{match = [\"{}\"], name = \"apart\"}}]", glob), "batch.accumulate=2"});
    ExpectAutograd(training_case.name, RunTraining(training_case));
  }
}

TEST(Families, EqualLibTorchAdamwOverTwentySteps) {
  for (const FamilyRow& family : Families) {
    for (const FamilyMesh& mesh : FamilyMeshes) {
      TrainingCase training_case = FamilyCase(
          family, mesh,
          {fmt::format("optimizer.lr={}", FamilyLr), fmt::format("optimizer.clip_norm={}", FamilyClipNorm),
           fmt::format("optimizer.weight_decay={}", FamilyWeightDecay), fmt::format("optimizer.eps={}", FamilyEps),
           fmt::format("train.steps={}", FamilySteps), "batch.accumulate=2"});
      training_case.steps = FamilySteps;
      // Every step sees most of the samples again, so the loss falls.
      training_case.num_tokens = 700;
      const TrainingRun run = RunTraining(training_case);
      TorchTrainingSettings settings{.beta1 = 0.9,
                                     .beta2 = 0.95,
                                     .eps = FamilyEps,
                                     .clip_norm = FamilyClipNorm,
                                     .lrs = Numbers(FamilySteps, FamilyLr),
                                     .groups = {}};
      for (const auto& [name, numbers] : run.initial) {
        settings.groups[name] = {.weight_decay = FamilyWeightDecay, .lr_scale = 1};
      }
      const TorchTraining f64 = TorchTrain(Precision::F64, run.shape, run.initial, run.batches, settings);
      EXPECT_LT(f64.losses.back(), f64.losses.front() - 0.3) << training_case.name << ": nothing was learned";
      double largest = 0;
      for (size_t step = 0; step < f64.losses.size(); ++step) {
        largest = std::max(largest, std::abs(run.losses[step] / f64.losses[step] - 1));
      }
      EXPECT_LE(largest, CurveTolerance) << training_case.name;
      fmt::print("{}: losses of {} steps differ by {:.2g} at most\n", training_case.name, FamilySteps, largest);
    }
  }
}

}  // namespace shardc
