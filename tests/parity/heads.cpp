// A loss of two terms, each with targets of its own: samples have targets for one head, for both or for none, and ranks
// differ in which. Collectives are those of the plan, whatever a batch holds.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

static constexpr std::string_view Tables = R"toml(
[[loss.head]]
name = "image"
vocab = 61
targets = ["image.u16"]
weight = 0.3
[[init.rule]]
match = "heads.image.weight"
value = "normal(0, 2 / sqrt(hidden))"
)toml";

static constexpr int64_t Micro = 3;

/// By microbatches: none, the model's own, the further head's, both.
static auto MixedTargets(std::string_view head, int64_t sample) -> bool {
  const int64_t kind = sample / Micro % 4;
  return head == "tokens" ? kind == 1 || kind == 3 : kind >= 2;
}

static auto MakeCase(std::string name, std::vector<std::string> sets) -> TrainingCase {
  sets.emplace_back("data.targets=[\"own.u16\"]");
  return {.name = std::move(name), .sets = std::move(sets), .tables = std::string(Tables), .has_targets = MixedTargets};
}

struct HeadRow {
  const char* name;
  bool tied;
  std::vector<std::string> sets;
};
static const std::vector<HeadRow> Rows{
    {"one rank, four microbatches", false, {"batch.accumulate=4"}},
    {"dp 2, neither rank has targets of its own kind alone", false, {"mesh.dp=2", "batch.accumulate=2"}},
    {"dp 3: none, own, further", true, {"mesh.dp=3"}},
    {"dp 2: none at one, own at the other", false, {"mesh.dp=2"}},
    {"tp 2, padded vocabularies", true, {"mesh.tp=2", "model.ffn=102", "model.seq=34", "batch.accumulate=4"}},
    {"dp 2 x tp 2, chunks",
     false,
     {"mesh.dp=2", "mesh.tp=2", "model.ffn=102", "model.seq=34", "loss.chunks=2", "batch.accumulate=2"}},
    {"replicate 2 x dp 2, chunks, all reduced at the end",
     false,
     {"mesh.replicate=2", "mesh.dp=2", "loss.chunks=3", "batch.accumulate=2", "batch.reduce=last"}},
    {"dp 2, full recomputation, units gathered again",
     false,
     {"mesh.dp=2", "batch.accumulate=2", "recompute.policy=full", "shard.reshard_after_forward=true"}},
};

TEST(LossHeads, GradientsEqualAutograd) {
  for (const HeadRow& row : Rows) {
    TrainingCase made = MakeCase(row.name, row.sets);
    made.tied = row.tied;
    ExpectAutograd(row.name, RunTraining(made));
  }
}

// Every target of the batch is the own head's: the further one has a zero gradient, and no part in the loss.
TEST(LossHeads, AHeadWithoutTargetsCountsForNothing) {
  TrainingCase made = MakeCase("own targets only", {"mesh.dp=2"});
  made.has_targets = [](std::string_view head, int64_t) { return head == "tokens"; };
  const TrainingRun run = RunTraining(made);
  ExpectAutograd(made.name, run);
  const Numbers& gradient = run.gradients.at("heads.image.weight");
  EXPECT_EQ(gradient, Numbers(gradient.size(), 0));
}

// Ranks differ in their targets at every step, and some steps have none at all.
TEST(LossHeads, AHundredStepsEqualThoseOfOneRank) {
  constexpr int64_t Steps = 100;
  const auto train = [](const char* name, std::vector<std::string> sets) {
    TrainingCase made = MakeCase(name, std::move(sets));
    made.steps = Steps;
    made.num_tokens = 33 * Micro * 2 * Steps + 1;
    made.has_targets = [](std::string_view head, int64_t sample) {
      const int64_t microbatch = sample / Micro;
      // Steps 10, 30, 50 ... have no target.
      return microbatch / 2 % 20 != 10 && MixedTargets(head, (microbatch * 7 + microbatch / 5) * Micro);
    };
    return RunTraining(made);
  };
  const TrainingRun one = train("100 steps on one rank", {"batch.accumulate=2"});
  const TrainingRun two = train("100 steps on two ranks", {"mesh.dp=2"});
  for (size_t step = 0; step < Steps; ++step) {
    EXPECT_NEAR(two.losses[step], one.losses[step], 1e-4 * std::max(1.0, one.losses[step])) << "step " << step;
  }
  EXPECT_EQ(one.losses[10], 0);
  EXPECT_EQ(two.grad_norms[10], 0);
  EXPECT_EQ(two.num_nonfinite, 0);
}

}  // namespace shardc
