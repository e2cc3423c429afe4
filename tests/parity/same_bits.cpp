// What may not change a bit: recomputation, resharding, a second run; and the mesh, of the initial parameters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

static auto ExpectSameBits(const std::string& name, const TrainingRun& a, const TrainingRun& b) -> void {
  EXPECT_TRUE(SameBits(a.losses, b.losses)) << name;
  EXPECT_TRUE(SameBits(a.grad_norms, b.grad_norms)) << name;
  EXPECT_TRUE(SameBits(a.gradients, b.gradients)) << name;
  EXPECT_TRUE(SameBits(a.parameters, b.parameters)) << name;
  EXPECT_TRUE(SameBits(a.exp_avg, b.exp_avg)) << name;
  EXPECT_TRUE(SameBits(a.exp_avg_sq, b.exp_avg_sq)) << name;
}

/// Of [recompute], besides all or nothing.
static const std::vector<std::vector<std::string>> RecomputeVariants{
    {"recompute.policy=full", "recompute.layers=\"1/3\""},
    {"recompute.policy=full", "recompute.layers=\"layer % 2 == 0\"", "shard.reshard_after_forward=true"},
    {"recompute.policy=selective", "recompute.save=[\"attention\"]"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\"]"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\", \"k_proj\", \"v_proj\", \"attention\"]"},
    {"recompute.policy=selective", "recompute.save=[\"o_proj\", \"gate_proj\"]", "recompute.layers=\"2/3\""},
    {"recompute.policy=selective", "recompute.save=[\"up_proj\", \"down_proj\"]", "shard.reshard_after_forward=true"},
    {"recompute.policy=torchtitan-sac"},
    {"recompute.policy=torchtitan-sac", "recompute.layers=\"0.7\"", "shard.reshard_after_forward=true"},
};

struct MeshRow {
  const char* name;
  bool tied;
  std::vector<std::string> sets;
};
static const std::vector<MeshRow> MeshRows{
    {"dp 1", false, {}},
    {"dp 2, accumulate 2", false, {"mesh.dp=2", "batch.accumulate=2"}},
    {"dp 3, tied", true, {"mesh.dp=3"}},
    {"dp 2, bf16, chunks", false, {"mesh.dp=2", "precision.compute=bf16", "precision.residual=fp32", "loss.chunks=3"}},
    {"dp 2, accumulate 2, tied, two threads a rank", true, {"mesh.dp=2", "batch.accumulate=2", "run.threads=2"}},
};

// The first row is the default, and running it twice is one of the comparisons.
static const std::vector<std::vector<std::string>> Variants{
    {},
    {"recompute.policy=none"},
    {"recompute.policy=full"},
    {"shard.reshard_after_forward=true"},
    {"shard.reshard_after_forward=false"},
    {"shard.prefetch_forward=1", "shard.prefetch_backward=2", "shard.reshard_after_forward=true"},
    {"shard.gather_ring=2", "shard.reduce_ring=2", "shard.reshard_after_forward=true"},
    {"recompute.policy=full", "shard.reshard_after_forward=true"},
    {"recompute.policy=full", "shard.reshard_after_forward=false"},
};

TEST(SameBits, OfRecomputeReshardAndASecondRun) {
  for (const MeshRow& mesh : MeshRows) {
    const TrainingRun first = RunTraining({.name = mesh.name, .tied = mesh.tied, .sets = mesh.sets, .steps = 3});
    EXPECT_FALSE(SameBits(first.initial, first.parameters)) << mesh.name << ": nothing was trained";
    for (const std::vector<std::string>& variant : Variants) {
      TrainingCase row{.name = fmt::format("{}, {}", mesh.name, fmt::join(variant, ", ")),
                       .tied = mesh.tied,
                       .sets = mesh.sets,
                       .steps = 3};
      row.sets.insert(row.sets.end(), variant.begin(), variant.end());
      ExpectSameBits(row.name, first, RunTraining(row));
    }
  }
}

// Threads take what tasks they come to, and their number decides how work is cut. The sizes are such that every op is
// cut.
TEST(SameBits, OfAnyNumberOfThreads) {
  for (const char* device : {"cpu-portable", "cpu"}) {
    for (const char* compute : {"fp32", "bf16"}) {
      TrainingCase row{.name = fmt::format("{}, {}, one thread", device, compute),
                       .sets = {fmt::format("run.device=\"{}\"", device), fmt::format("precision.compute={}", compute),
                                "model.seq=128", "model.hidden=512", "model.ffn=900", "batch.micro=2", "run.threads=1"},
                       .steps = 2};
      const TrainingRun one = RunTraining(row);
      EXPECT_FALSE(SameBits(one.initial, one.parameters)) << row.name << ": nothing was trained";
      for (const int threads : {2, 3}) {
        row.sets.back() = fmt::format("run.threads={}", threads);
        ExpectSameBits(fmt::format("{}, {}, {} threads", device, compute, threads), one, RunTraining(row));
      }
    }
  }
}

TEST(SameBits, OfEachPolicyOfRecomputation) {
  const std::vector<MeshRow> meshes{
      {"dp 2, accumulate 3", false, {"mesh.dp=2", "batch.accumulate=3"}},
      {"dp 2, bf16", true, {"mesh.dp=2", "precision.compute=bf16"}},
      {"dp 1, bf16, residual fp32", false, {"precision.compute=bf16", "precision.residual=fp32"}},
  };
  for (const MeshRow& mesh : meshes) {
    const TrainingRun kept = RunTraining({.name = mesh.name, .tied = mesh.tied, .sets = mesh.sets, .steps = 2});
    EXPECT_FALSE(SameBits(kept.initial, kept.parameters)) << mesh.name << ": nothing was trained";
    for (const std::vector<std::string>& variant : RecomputeVariants) {
      TrainingCase row{.name = fmt::format("{}, {}", mesh.name, fmt::join(variant, ", ")),
                       .tied = mesh.tied,
                       .sets = mesh.sets,
                       .steps = 2};
      row.sets.insert(row.sets.end(), variant.begin(), variant.end());
      ExpectSameBits(row.name, kept, RunTraining(row));
    }
  }
}

/// Of groups of dp, with what else decides when a unit is gathered.
static const std::vector<std::vector<std::string>> GroupVariants{
    {},
    {"shard.reshard_after_forward=true"},
    {"shard.reshard_after_forward=true", "recompute.policy=full", "shard.prefetch_backward=1"},
    {"shard.reshard_after_forward=true", "recompute.policy=selective", "recompute.save=[\"attention\"]",
     "shard.prefetch_forward=2", "shard.prefetch_backward=2"},
    {"shard.reshard_after_forward=\"layer % 2 == 0\"", "shard.gather_ring=2", "shard.reduce_ring=2"},
    {"shard.override=[{match = \"layers.1\", reshard_after_forward = false}, {match = \"head\", reshard_after_forward "
     "= true}]",
     "shard.prefetch_backward=2"},
};

TEST(SameBits, OfGroupsThatBackwardGathersFrom) {
  const std::vector<MeshRow> meshes{
      {"dp 4 in groups of 2, chunks", false, {"mesh.dp=4", "shard.reshard_size=2", "loss.chunks=3"}},
      {"dp 6 in groups of 3, accumulate 2, norms frozen",
       false,
       {"mesh.dp=6", "shard.reshard_size=3", "batch.accumulate=2", "optimizer.frozen=[\"*norm.weight\"]"}},
      {"dp 4 in groups of 2, bf16, accumulate 3, reduced last",
       false,
       {"mesh.dp=4", "shard.reshard_size=2", "precision.compute=bf16", "batch.accumulate=3", "batch.reduce=last"}},
      {"dp 4 in groups of 2, kept in bf16, blocks in two types",
       false,
       {"mesh.dp=4", "shard.reshard_size=2", "precision.compute=bf16", "precision.master=bf16",
        "precision.override=[{match = \"layers.1\", compute = \"fp32\", master = \"fp32\"}]"}},
      {"replicate 2 x dp 4 in groups of 2", false, {"mesh.replicate=2", "mesh.dp=4", "shard.reshard_size=2"}},
      {"dp 4 in groups of 2 x tp 2, bf16",
       false,
       {"mesh.dp=4", "mesh.tp=2", "model.ffn=102", "model.seq=36", "shard.reshard_size=2", "precision.compute=bf16"}},
  };
  for (const MeshRow& mesh : meshes) {
    std::vector<std::string> ungrouped = mesh.sets;
    std::erase_if(ungrouped, [](const std::string& set) { return set.starts_with("shard.reshard_size="); });
    const TrainingRun kept = RunTraining({.name = mesh.name, .sets = ungrouped, .steps = 2});
    EXPECT_FALSE(SameBits(kept.initial, kept.parameters)) << mesh.name << ": nothing was trained";
    for (const std::vector<std::string>& variant : GroupVariants) {
      TrainingCase row{
          .name = fmt::format("{}, {}", mesh.name, fmt::join(variant, ", ")), .sets = mesh.sets, .steps = 2};
      row.sets.insert(row.sets.end(), variant.begin(), variant.end());
      ExpectSameBits(row.name, kept, RunTraining(row));
    }
  }
  const TrainingRun tied = RunTraining({.name = "tied", .tied = true, .sets = {"mesh.dp=4"}, .steps = 2});
  ExpectSameBits("tied, torchtitan's units in groups", tied,
                 RunTraining({.name = "tied in groups",
                              .tied = true,
                              .sets = {"mesh.dp=4", "shard.reshard_size=2", "shard.units=\"torchtitan\""},
                              .steps = 2}));
}

static const std::vector<std::vector<std::string>> Units{
    {"shard.units=\"torchtitan\""},
    {"shard.units=\"torchtitan\"", "shard.reshard_after_forward=true"},
    {"shard.units=\"blocks:2\""},
    {"shard.units=\"blocks:3\"", "shard.reshard_after_forward=true", "recompute.policy=full"},
    {"shard.units=\"size:30 KiB\""},
    {"shard.units=\"size:1 GiB\"", "shard.reshard_after_forward=true"},
    {"shard.units=\"size:70 KiB\"", "shard.override=[{match = \"part.?\", reshard_after_forward = true}]"},
    {"shard.unit=[{match = [\"*norm.weight\"]}, {match = [\"*.down_proj.weight\", \"*embed*\"], name = \"mixed\"}]",
     "shard.override=[{match = \"mixed\", reshard_after_forward = true}, {match = \"layers.*\", reshard_after_forward "
     "= false}]",
     "shard.prefetch_forward=1", "shard.prefetch_backward=2"},
};

// Squares are added up in another order, so the norm may differ in its last bits, and with it what is clipped by it.
TEST(SameBits, OfUnits) {
  for (const MeshRow& mesh : MeshRows) {
    const auto train = [&](const std::vector<std::string>& units) {
      TrainingCase row{.name = fmt::format("{}, {}", mesh.name, fmt::join(units, ", ")),
                       .tied = mesh.tied,
                       .sets = mesh.sets,
                       .steps = 3};
      row.sets.emplace_back("optimizer.clip_norm=0");
      row.sets.insert(row.sets.end(), units.begin(), units.end());
      return RunTraining(row);
    };
    const TrainingRun first = train({});
    for (const std::vector<std::string>& units : Units) {
      const std::string name = fmt::format("{}, {}", mesh.name, fmt::join(units, ", "));
      TrainingRun run = train(units);
      for (size_t step = 0; step < run.grad_norms.size(); ++step) {
        EXPECT_NEAR(run.grad_norms[step], first.grad_norms[step], 1e-13 * first.grad_norms[step]) << name;
      }
      run.grad_norms = first.grad_norms;
      ExpectSameBits(name, first, run);
    }
  }
}

TEST(SameBits, OfInitialParametersOnAnyMesh) {
  for (const bool tied : {false, true}) {
    const TrainingRun one = RunTraining({.name = "1 rank", .tied = tied});
    for (const int dp : {2, 3, 4}) {
      const std::string name = fmt::format("{} ranks", dp);
      const TrainingRun run = RunTraining({.name = name, .tied = tied, .sets = {fmt::format("mesh.dp={}", dp)}});
      EXPECT_TRUE(SameBits(one.initial, run.initial)) << name;
    }
  }
}

}  // namespace shardc
