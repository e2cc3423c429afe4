// Twenty steps against LibTorch's AdamW, and SGD, after clip_grad_norm_, with a schedule and groups; and the eval loss.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

constexpr int64_t NumSteps = 20;
/// Below every norm that the runs see.
constexpr double ClipNorm = 0.05;

// By what LibTorch in f32 is off from itself in f64 after the same steps. AdamW divides by the root of the second
// moment, so an element with a gradient near nothing carries its rounding error at full size: errors are far above
// those of gradients, and alike in kind for all arithmetic in f32. Errors of parameters are relative to how far they
// moved. The order of sums alone, which differs between builds with and without the sanitizers, made errors of losses
// vary from 2e-6 to 9e-6, and those of parameters from 7e-6 to 1.5e-5.
constexpr Tolerance ParameterTolerance{.floor = 2e-5, .times = 2};
// Of the largest error over the steps: losses and norms drift with the parameters.
constexpr double LossFloor = 1e-5;
constexpr double NormFloor = 1e-5;

static constexpr std::string_view Groups = R"toml(
[[optimizer.group]]
match = "*norm.weight"
weight_decay = 0
[[optimizer.group]]
match = "model.embed_tokens.weight"
weight_decay = 0.3
lr_scale = 0.25
)toml";

static auto GroupOf(const std::string& parameter) -> TorchGroup {
  if (parameter.ends_with("norm.weight")) {
    return {.weight_decay = 0, .lr_scale = 1};
  }
  if (parameter == "model.embed_tokens.weight") {
    return {.weight_decay = 0.3, .lr_scale = 0.25};
  }
  return {.weight_decay = 0.2, .lr_scale = 1};
}

/// What the recipe's expression says.
static auto LrAt(int64_t step) -> double {
  const auto s = static_cast<double>(step);
  return 0.01 * std::min((s + 1) / 5, 0.1 + 0.45 * (1 + std::cos(std::numbers::pi * s / NumSteps)));
}

struct TrainingRow {
  const char* name;
  bool tied;
  std::vector<std::string> sets;
};
static const std::vector<TrainingRow> TrainingRows{
    {"dp 1", false, {}},
    {"dp 2, accumulate 2, tied", true, {"mesh.dp=2", "batch.accumulate=2"}},
    {"dp 3, recompute", false, {"mesh.dp=3", "recompute.policy=full"}},
};

/// max over steps of |a - b| / |b|
static auto LargestError(const Numbers& a, const Numbers& b) -> double {
  double error = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    error = std::max(error, std::abs(a[i] - b[i]) / std::abs(b[i]));
  }
  return error;
}

/// `actual` step by step within `floor` or twice LibTorch's own error in f32.
static auto ExpectCurve(const std::string& name, const Numbers& actual, const Numbers& f64, const Numbers& f32,
                        double floor) -> void {
  const double error = LargestError(actual, f64);
  const double allowed = std::max(floor, 2 * LargestError(f32, f64));
  EXPECT_LE(error, allowed) << name;
  fmt::print("{}: largest relative error {:.2g}, {:.0f} per cent of tolerance\n", name, error, 100 * error / allowed);
}

static auto Minus(const NamedNumbers& a, const NamedNumbers& b) -> NamedNumbers {
  NamedNumbers result = a;
  for (auto& [name, numbers] : result) {
    for (size_t i = 0; i < numbers.size(); ++i) {
      numbers[i] -= b.at(name)[i];
    }
  }
  return result;
}

TEST(Training, EqualsLibTorchAdamw) {
  for (const TrainingRow& row : TrainingRows) {
    TrainingCase training_case{.name = row.name,
                               .tied = row.tied,
                               .sets = row.sets,
                               .tables = std::string(Groups),
                               .steps = NumSteps,
                               // Every step sees most of the samples again, so the loss falls.
                               .num_tokens = 700};
    for (const char* set : {"optimizer.lr=\"0.01 * min((step + 1) / 5, 0.1 + 0.45 * (1 + cos(pi * step / steps)))\"",
                            "optimizer.weight_decay=0.2", "optimizer.betas=[0.9, 0.97]", "optimizer.eps=1e-7"}) {
      training_case.sets.emplace_back(set);
    }
    training_case.sets.push_back(fmt::format("optimizer.clip_norm={}", ClipNorm));
    training_case.sets.push_back(fmt::format("train.steps={}", NumSteps));
    const TrainingRun run = RunTraining(training_case);

    TorchTrainingSettings settings{
        .beta1 = 0.9, .beta2 = 0.97, .eps = 1e-7, .clip_norm = ClipNorm, .lrs = {}, .groups = {}};
    for (int64_t step = 0; step < NumSteps; ++step) {
      settings.lrs.push_back(LrAt(step));
      EXPECT_NEAR(run.lrs[static_cast<size_t>(step)], LrAt(step), 1e-15) << row.name << " step " << step;
      EXPECT_GT(run.grad_norms[static_cast<size_t>(step)], ClipNorm) << row.name << " step " << step << ": no clipping";
    }
    for (const auto& [name, numbers] : run.initial) {
      settings.groups[name] = GroupOf(name);
    }
    const TorchTraining f64 = TorchTrain(Precision::F64, run.shape, run.initial, run.batches, settings);
    const TorchTraining f32 = TorchTrain(Precision::F32, run.shape, run.initial, run.batches, settings);
    EXPECT_LT(f64.losses.back(), f64.losses.front() - 1) << row.name << ": nothing was learned";
    ExpectCurve(fmt::format("{}: losses", row.name), run.losses, f64.losses, f32.losses, LossFloor);
    ExpectCurve(fmt::format("{}: gradient norms", row.name), run.grad_norms, f64.grad_norms, f32.grad_norms, NormFloor);
    ExpectClose(fmt::format("{}: parameters", row.name), run.parameters, f64.parameters, f32.parameters,
                Minus(f64.parameters, run.initial), ParameterTolerance);
  }
}

struct SgdRow {
  TrainingRow training;
  double momentum;
  bool nesterov;
};
static const std::vector<SgdRow> SgdRows{
    {{"SGD, dp 1, Nesterov", false, {}}, 0.9, true},
    {{"SGD, dp 2, accumulate 2, tied", true, {"mesh.dp=2", "batch.accumulate=2"}}, 0.9, false},
    {{"SGD, dp 3, recompute, no momentum", false, {"mesh.dp=3", "recompute.policy=full"}}, 0, false},
    {{"SGD, replicate 2 x dp 2 x tp 2, Nesterov",
      false,
      {"mesh.replicate=2", "mesh.dp=2", "mesh.tp=2", "model.ffn=102", "model.seq=34"}},
     0.9,
     true},
};

TEST(Training, EqualsLibTorchSgd) {
  // Clipped gradients move parameters less than AdamW's quotients do.
  constexpr double LrScale = 50;
  for (const auto& [row, momentum, nesterov] : SgdRows) {
    TrainingCase training_case{.name = row.name,
                               .tied = row.tied,
                               .sets = row.sets,
                               .tables = std::string(Groups),
                               .steps = NumSteps,
                               .num_tokens = 700};
    for (const char* set :
         {"optimizer.name=sgd", "optimizer.lr=\"0.5 * min((step + 1) / 5, 0.1 + 0.45 * (1 + cos(pi * step / steps)))\"",
          "optimizer.weight_decay=0.2"}) {
      training_case.sets.emplace_back(set);
    }
    training_case.sets.push_back(fmt::format("optimizer.momentum={}", momentum));
    training_case.sets.push_back(fmt::format("optimizer.nesterov={}", nesterov));
    training_case.sets.push_back(fmt::format("optimizer.clip_norm={}", ClipNorm));
    training_case.sets.push_back(fmt::format("train.steps={}", NumSteps));
    const TrainingRun run = RunTraining(training_case);

    TorchTrainingSettings settings{.sgd = TorchTrainingSettings::Sgd{.momentum = momentum, .nesterov = nesterov},
                                   .clip_norm = ClipNorm,
                                   .lrs = {},
                                   .groups = {}};
    for (int64_t step = 0; step < NumSteps; ++step) {
      settings.lrs.push_back(LrScale * LrAt(step));
      EXPECT_GT(run.grad_norms[static_cast<size_t>(step)], ClipNorm) << row.name << " step " << step << ": no clipping";
    }
    for (const auto& [name, numbers] : run.initial) {
      settings.groups[name] = GroupOf(name);
    }
    const TorchTraining f64 = TorchTrain(Precision::F64, run.shape, run.initial, run.batches, settings);
    const TorchTraining f32 = TorchTrain(Precision::F32, run.shape, run.initial, run.batches, settings);
    EXPECT_LT(f64.losses.back(), f64.losses.front()) << row.name << ": nothing was learned";
    ExpectCurve(fmt::format("{}: losses", row.name), run.losses, f64.losses, f32.losses, LossFloor);
    ExpectCurve(fmt::format("{}: gradient norms", row.name), run.grad_norms, f64.grad_norms, f32.grad_norms, NormFloor);
    ExpectClose(fmt::format("{}: parameters", row.name), run.parameters, f64.parameters, f32.parameters,
                Minus(f64.parameters, run.initial), ParameterTolerance);
  }
}

// 11 held-out samples of 33 and 5 tokens besides: with 2 ranks of micro 3 the last batch is half empty.
TEST(Training, EvalLossEqualsTheMeanOverHeldOutTargets) {
  constexpr int64_t NumSamples = 11;
  constexpr int64_t Seq = 33;
  constexpr int64_t EvalTokens = NumSamples * Seq + 1 + 5;
  for (const int dp : {1, 2, 3}) {
    const std::string name = fmt::format("eval, dp {}", dp);
    const TrainingRun run =
        RunTraining({.name = name,
                     .sets = {fmt::format("mesh.dp={}", dp), fmt::format("data.eval_tokens={}", EvalTokens)},
                     .steps = 2,
                     .evaluates = true});
    const auto begin = run.stream.end() - EvalTokens;
    const TokenBatch held_out{.num_sequences = NumSamples,
                              .seq = Seq,
                              .tokens = {begin, begin + NumSamples * Seq},
                              .targets = {begin + 1, begin + 1 + NumSamples * Seq}};
    const double expected = TorchLoss(Precision::F64, run.shape, run.parameters, held_out);
    EXPECT_NEAR(run.eval_loss, expected, LossTolerance * expected) << name;
  }
}

}  // namespace shardc
