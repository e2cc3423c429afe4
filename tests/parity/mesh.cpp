// Every mesh gives the same numbers: gradients and their norm of one step against LibTorch's autograd, over replicas,
// data and tensor parallelism, with whatever else changes the plan; losses of SGD against those of one rank.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

using Sets = std::vector<std::string>;

/// Batch 3, 3 layers, vocabulary 257 (padded over tp), hidden 60, 4 heads on 2 kv heads; ffn and seq divide by 2.
static const Sets Divisible{"model.ffn=102", "model.seq=34"};

struct MeshCase {
  const char* name;
  Sets sets;
};
static const std::vector<MeshCase> MeshCases{
    {"dp 2", {"mesh.dp=2"}},
    {"tp 2", {"mesh.tp=2"}},
    {"dp 2 x tp 2", {"mesh.dp=2", "mesh.tp=2"}},
    {"replicate 2 x dp 2", {"mesh.replicate=2", "mesh.dp=2"}},
};

static auto With(Sets sets, const Sets& more) -> Sets {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

/// The norm that clipping has: of every parameter once.
static auto ExpectNorm(const std::string& name, const TrainingRun& run, double tolerance) -> void {
  double squares = 0;
  for (const auto& [parameter, numbers] : run.gradients) {
    for (const double number : numbers) {
      squares += number * number;
    }
  }
  EXPECT_NEAR(run.grad_norms[0], std::sqrt(squares), tolerance * std::sqrt(squares)) << name;
  // clip_norm is 0.5.
  EXPECT_GT(run.grad_norms[0], 0.5) << name << ": nothing is clipped";
}

/// Policies of recomputation.
static const std::vector<Sets> Policies{
    {"recompute.policy=none"},
    {"recompute.policy=full"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\", \"o_proj\", \"attention\"]"},
};

TEST(Meshes, GradientsEqualAutograd) {
  bool tied = false;
  for (const MeshCase& mesh : MeshCases) {
    for (const Sets& policy : Policies) {
      for (const char* reshard : {"shard.reshard_after_forward=true", "shard.reshard_after_forward=false"}) {
        for (const char* accumulate : {"batch.accumulate=1", "batch.accumulate=3"}) {
          tied = !tied;
          const std::string name =
              fmt::format("{}, {}, {}, {}, {}", mesh.name, policy[0], reshard, accumulate, tied ? "tied" : "untied");
          const TrainingRun run =
              RunTraining({.name = name,
                           .tied = tied,
                           .sets = With(With(With(Divisible, mesh.sets), policy), {reshard, accumulate})});
          ExpectAutograd(name, run);
          ExpectNorm(name, run, 1e-9);
        }
      }
    }
  }
}

TEST(Meshes, GradientsInBf16AreAsCloseAsLibTorchs) {
  for (const MeshCase& mesh : MeshCases) {
    for (const Sets& policy : Policies) {
      for (const bool tied : {false, true}) {
        const char* const accumulate = tied ? "batch.accumulate=3" : "batch.accumulate=1";
        const std::string name = fmt::format("bf16, {}, {}, {}", mesh.name, policy[0], accumulate);
        const TrainingRun run =
            RunTraining({.name = name,
                         .tied = tied,
                         .sets = With(With(With(Divisible, mesh.sets), policy),
                                      {"precision.compute=bf16", accumulate,
                                       tied ? "precision.residual=fp32" : "precision.residual=compute"})});
        const LossAndGradients f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
        const LossAndGradients bf16 = TorchGradients(Precision::BF16, run.shape, run.initial, run.batches[0]);
        ExpectClose(name, run.gradients, f64.gradients, bf16.gradients, f64.gradients, {.floor = 0, .times = 2});
        ExpectNorm(name, run, 1e-9);
      }
    }
  }
}

static const std::vector<MeshCase> OtherMeshes{
    {"tp 4, vocabulary of 9, one rank without a row",
     {"mesh.tp=4", "model.vocab=9", "model.kv_heads=4", "model.ffn=104", "model.seq=36"}},
    {"replicate 2 x dp 2 x tp 2", {"mesh.replicate=2", "mesh.dp=2", "mesh.tp=2"}},
    {"replicate 3", {"mesh.replicate=3"}},
    {"replicate 2 x tp 2, accumulate 2", {"mesh.replicate=2", "mesh.tp=2", "batch.accumulate=2"}},
    {"dp 3 x tp 2, 17 chunks of the loss", {"mesh.dp=3", "mesh.tp=2", "loss.chunks=17"}},
    {"dp 2 x tp 2, prefetch", {"mesh.dp=2", "mesh.tp=2", "shard.prefetch_forward=1", "shard.prefetch_backward=2"}},
    {"dp 2 x tp 2, two threads", {"mesh.dp=2", "mesh.tp=2", "run.threads=2"}},
    {"dp 2 x tp 2, torchtitan's units and recomputation",
     {"mesh.dp=2", "mesh.tp=2", "shard.units=torchtitan", "recompute.policy=torchtitan-sac"}},
    {"dp 2 x tp 2, two blocks a unit, half of the blocks recomputed",
     {"mesh.dp=2", "mesh.tp=2", "shard.units=blocks:2", "recompute.policy=full", "recompute.layers=1/2"}},
    {"dp 2, accumulate 3, reduced on the last", {"mesh.dp=2", "batch.accumulate=3", "batch.reduce=last"}},
    {"accumulate 3, reduced on the last", {"batch.accumulate=3", "batch.reduce=last"}},
    {"replicate 2 x dp 2 x tp 2, accumulate 2, reduced on the last, units of a size",
     {"mesh.replicate=2", "mesh.dp=2", "mesh.tp=2", "batch.accumulate=2", "batch.reduce=last",
      "shard.units=size:30 KiB", "recompute.policy=full"}},
    {"dp 2 x tp 2, norms apart",
     {"mesh.dp=2", "mesh.tp=2", "shard.unit=[{match = [\"*norm.weight\"], name = \"norms\"}]"}},
    {"dp 2 x tp 2, reference kernels", {"mesh.dp=2", "mesh.tp=2", "run.kernels=reference"}},
};

TEST(Meshes, OthersEqualAutograd) {
  for (const MeshCase& mesh : OtherMeshes) {
    for (const bool tied : {false, true}) {
      const std::string name = fmt::format("{}, {}", mesh.name, tied ? "tied" : "untied");
      const TrainingRun run = RunTraining({.name = name, .tied = tied, .sets = With(Divisible, mesh.sets)});
      ExpectAutograd(name, run);
      ExpectNorm(name, run, 1e-9);
    }
  }
}

/// A case's sizes and kernels on one rank, with as many microbatches as the mesh has in all.
static auto OnOneRank(const TrainingCase& on_mesh) -> TrainingCase {
  const Plan plan = CompileTraining(on_mesh);
  TrainingCase alone = on_mesh;
  alone.sets.insert(alone.sets.end(),
                    {"mesh.dp=1", "mesh.tp=1", "mesh.replicate=1",
                     fmt::format("batch.accumulate={}", SamplesPerStep(plan) / plan.run.micro_batch)});
  return alone;
}

// Sums over ranks come in another order; what SGD keeps between the steps is cut like the parameters.
TEST(Meshes, SgdGivesTheLossesOfOneRank) {
  constexpr size_t NumSteps = 4;
  std::vector<MeshCase> meshes = MeshCases;
  meshes.insert(meshes.end(), OtherMeshes.begin(), OtherMeshes.end());
  double greatest = 0;
  for (const MeshCase& mesh : meshes) {
    for (const Sets& sgd : {Sets{"optimizer.momentum=0.9", "optimizer.nesterov=true"}, Sets{"optimizer.momentum=0"}}) {
      const TrainingCase on_mesh{
          .name = fmt::format("{}, {}", mesh.name, sgd[0]),
          .sets = With(With(With(Divisible, mesh.sets), {"optimizer.name=sgd", "optimizer.lr=0.5"}), sgd),
          .steps = NumSteps};
      const TrainingRun many = RunTraining(on_mesh);
      const TrainingRun one = RunTraining(OnOneRank(on_mesh));
      for (size_t step = 0; step < NumSteps; ++step) {
        const double difference = std::abs(many.losses[step] / one.losses[step] - 1);
        EXPECT_LE(difference, LossTolerance) << on_mesh.name << ", step " << step;
        greatest = std::max(greatest, difference);
      }
      EXPECT_GT(std::abs(one.losses[NumSteps - 1] / one.losses[0] - 1), 1e-3) << on_mesh.name << ": nothing moved";
      ExpectClose(on_mesh.name, many.parameters, one.parameters, one.parameters, one.parameters,
                  {.floor = 1e-5, .times = 0});
    }
  }
  fmt::print("losses on {} meshes differ from those of one rank by {:.2g} of themselves at most\n", meshes.size(),
             greatest);
}

TEST(Meshes, MaskedTargetsCountOverAllReplicas) {
  for (const MeshCase& mesh : MeshCases) {
    ExpectAutograd(mesh.name, RunTraining({.name = mesh.name,
                                           .sets = With(Divisible, mesh.sets),
                                           .mask = [](int64_t replica, std::span<int32_t> targets) {
                                             for (size_t i = 0; i < targets.size(); ++i) {
                                               targets[i] = replica == 0 && i % 3 != 0 ? -1 : targets[i];
                                             }
                                           }}));
  }
}

// A frozen parameter keeps its bits and has no gradient; the others have those of training all. Vectors of norms have
// no padding, so that the one norm outside of the blocks is all that ranks along tp sum if the blocks are frozen.
TEST(Meshes, FrozenParametersChangeNothingElse) {
  const Sets unpadded = With(Divisible, {"model.hidden=128"});
  for (const MeshCase& mesh : MeshCases) {
    for (const char* frozen : {"optimizer.frozen=[\"*norm.weight\"]", "optimizer.frozen=[\"*embed*\", \"*.0.*\"]",
                               "optimizer.frozen=[\"model.layers.*\"]",
                               "optimizer.frozen=[\"*_proj.weight\", \"*embed*\", \"lm_head.weight\"]"}) {
      const auto run = [&](const Sets& sets) {
        return RunTraining({.name = mesh.name, .sets = With(With(unpadded, mesh.sets), sets)});
      };
      const TrainingRun all = run({});
      const TrainingRun some = run({frozen});
      const std::string name = fmt::format("{}, {}", mesh.name, frozen);
      size_t num_frozen = 0;
      double squares = 0;
      for (const auto& [parameter, gradient] : some.gradients) {
        if (std::isnan(gradient.front())) {
          ++num_frozen;
          EXPECT_TRUE(SameBits(some.initial.at(parameter), some.parameters.at(parameter))) << name << ": " << parameter;
          continue;
        }
        EXPECT_TRUE(SameBits(gradient, all.gradients.at(parameter))) << name << ": " << parameter;
        for (const double number : gradient) {
          squares += number * number;
        }
      }
      EXPECT_GT(num_frozen, 0U) << name;
      EXPECT_LT(num_frozen, some.gradients.size()) << name;
      EXPECT_NEAR(some.grad_norms[0], std::sqrt(squares), 1e-9 * std::sqrt(squares)) << name;
    }
  }
}

TEST(Meshes, InitialParametersAreTheSameBits) {
  for (const bool tied : {false, true}) {
    const TrainingRun one = RunTraining({.name = "1 rank", .tied = tied, .sets = Divisible});
    for (const MeshCase& mesh : MeshCases) {
      const TrainingRun run = RunTraining({.name = mesh.name, .tied = tied, .sets = With(Divisible, mesh.sets)});
      EXPECT_TRUE(SameBits(one.initial, run.initial)) << mesh.name;
    }
  }
}

// Recomputation, resharding and prefetching change no bit on any mesh.
TEST(Meshes, SameBitsWhateverIsGatheredOrComputedAgain) {
  for (const MeshCase& mesh : MeshCases) {
    for (const char* compute : {"precision.compute=fp32", "precision.compute=bf16"}) {
      const auto run = [&](const Sets& sets) {
        return RunTraining(
            {.name = mesh.name, .sets = With(With(With(Divisible, mesh.sets), {compute}), sets), .steps = 3});
      };
      const TrainingRun first = run({});
      for (const Sets& sets : {Sets{}, Policies[1], Policies[2], Sets{"recompute.policy=torchtitan-sac"},
                               Sets{"shard.reshard_after_forward=true"},
                               Sets{"shard.reshard_after_forward=false", "recompute.policy=full"}}) {
        const TrainingRun other = run(sets);
        const std::string name = fmt::format("{}, {}, {}", mesh.name, compute, fmt::join(sets, ", "));
        EXPECT_TRUE(SameBits(first.losses, other.losses)) << name;
        EXPECT_TRUE(SameBits(first.grad_norms, other.grad_norms)) << name;
        EXPECT_TRUE(SameBits(first.parameters, other.parameters)) << name;
      }
    }
  }
}

}  // namespace shardc
