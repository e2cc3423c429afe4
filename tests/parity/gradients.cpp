// Gradients of one step against LibTorch's autograd: sizes, ties, microbatches, ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

struct ShapeRow {
  const char* name;
  std::vector<std::string> sets;
};
static const std::vector<ShapeRow> Shapes{
    {"hidden 60", {}},
    {"hidden 77, heads of 20", {"model.hidden=77", "model.head_dim=20"}},
};

TEST(Gradients, EqualAutograd) {
  for (const ShapeRow& shape : Shapes) {
    for (const bool tied : {false, true}) {
      for (const int dp : {1, 2, 3}) {
        for (const int accumulate : {1, 3}) {
          TrainingCase row{
              .name = fmt::format("{}, {}, dp {}, accumulate {}", shape.name, tied ? "tied" : "untied", dp, accumulate),
              .tied = tied,
              .sets = shape.sets};
          row.sets.push_back(fmt::format("mesh.dp={}", dp));
          row.sets.push_back(fmt::format("batch.accumulate={}", accumulate));
          ExpectAutograd(row.name, RunTraining(row));
        }
      }
    }
  }
}

// Every form of grouping, one head, long rows, short ones, one layer; and vectors so short that some ranks own padding
// only.
static const std::vector<ShapeRow> OtherShapes{
    {"a kv head a head", {"mesh.dp=2", "model.kv_heads=4"}},
    {"one kv head", {"mesh.dp=2", "model.kv_heads=1"}},
    {"one head", {"mesh.dp=2", "model.heads=1", "model.kv_heads=1", "model.head_dim=34"}},
    {"seq 131", {"mesh.dp=2", "model.seq=131"}},
    {"seq 2", {"mesh.dp=2", "batch.micro=9", "model.seq=2"}},
    {"one layer, large theta and eps",
     {"mesh.dp=2", "model.layers=1", "model.rope_theta=500000.0", "model.norm_eps=0.01"}},
    {"hidden 50, ffn 7, vocab 19, dp 5", {"mesh.dp=5", "model.hidden=50", "model.ffn=7", "model.vocab=19"}},
};

TEST(Gradients, EqualAutogradOfOtherShapes) {
  for (const ShapeRow& row : OtherShapes) {
    ExpectAutograd(row.name, RunTraining({.name = row.name, .sets = row.sets}));
  }
}

// Heads of 12, of 6 pairs.
TEST(Gradients, EqualAutogradWithFrequenciesByAFormula) {
  const std::string formula = "\"if index(0) < 2 then 0 else 1 / index(0)\"";
  TrainingRun run = RunTraining({.name = "frequencies", .sets = {"mesh.dp=2", "model.rope_frequency=" + formula}});
  run.shape.rope_frequencies = {0, 0, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5};
  ExpectAutograd("frequencies", run);
}

struct SplitRow {
  int dp;
  int micro;
  int accumulate;
};
static const std::vector<SplitRow> SplitRows{{1, 6, 1}, {1, 1, 6}, {1, 2, 3}, {2, 3, 1},
                                             {2, 1, 3}, {3, 2, 1}, {3, 1, 2}};

// One global batch of 6, however it is dealt out: the same samples, and the same gradients within tolerance.
TEST(Gradients, DoNotDependOnTheSplit) {
  std::optional<TrainingRun> first;
  LossAndGradients f64;
  LossAndGradients f32;
  for (const SplitRow& split : SplitRows) {
    const std::string name = fmt::format("dp {} * micro {} * accumulate {}", split.dp, split.micro, split.accumulate);
    const TrainingRun run =
        RunTraining({.name = name,
                     .sets = {fmt::format("mesh.dp={}", split.dp), fmt::format("batch.micro={}", split.micro),
                              fmt::format("batch.accumulate={}", split.accumulate)}});
    if (!first) {
      first = run;
      f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
      f32 = TorchGradients(Precision::F32, run.shape, run.initial, run.batches[0]);
    }
    EXPECT_EQ(run.batches[0].tokens, first->batches[0].tokens) << name;
    EXPECT_EQ(run.batches[0].targets, first->batches[0].targets) << name;
    EXPECT_NEAR(run.losses[0], first->losses[0], LossTolerance * first->losses[0]) << name;
    ExpectClose(name, run.gradients, f64.gradients, f32.gradients, f64.gradients, GradientTolerance);
    for (const auto& [parameter, numbers] : run.gradients) {
      const Numbers& of_first = first->gradients.at(parameter);
      const double torch_error =
          RelativeError(f32.gradients.at(parameter), f64.gradients.at(parameter), f64.gradients.at(parameter));
      EXPECT_LE(RelativeError(numbers, of_first, of_first),
                std::max(GradientTolerance.floor, GradientTolerance.times * torch_error))
          << name << ": " << parameter;
    }
  }
}

// The stream is cut as the recipe's reference says: sample i is tokens[i * seq ... i * seq + seq].
TEST(Gradients, AreOfTheSamplesOfTheStep) {
  const TrainingRun run = RunTraining({.name = "samples", .sets = {"mesh.dp=2", "batch.accumulate=2"}, .steps = 2});
  const int64_t size = run.batches[0].num_sequences * run.batches[0].seq;
  for (size_t step = 0; step < 2; ++step) {
    const auto begin = run.stream.begin() + static_cast<int64_t>(step) * size;
    EXPECT_EQ(run.batches[step].tokens, std::vector<int32_t>(begin, begin + size));
    EXPECT_EQ(run.batches[step].targets, std::vector<int32_t>(begin + 1, begin + 1 + size));
  }
}

}  // namespace shardc
