// Low-rank adapters against LibTorch's autograd: gradients of a step, and thirty steps of AdamW, on five meshes. The
// base keeps its bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "compiler/base/glob.h"
#include "tests/parity/compare.h"
#include "tests/parity/training_run.h"

namespace shardc {

using Sets = std::vector<std::string>;

constexpr int64_t AdapterSteps = 30;
constexpr double AdapterLr = 0.003;
constexpr double AdapterClipNorm = 0.5;
constexpr double AdapterEps = 1e-6;
/// Relative, of the loss and of the norm of each step.
constexpr double AdapterLossTolerance = 1e-5;
constexpr double AdapterNormTolerance = 1e-4;

/// A rule without which the gradient of A would be 0.
constexpr const char* NonzeroB = "[[init.rule]]\nmatch = \"*.lora_B.weight\"\nvalue = \"normal(0, 0.3)\"\n";

struct AdapterRow {
  const char* name;
  Sets sets;
  /// The scale of the adapter of a module, by a glob over names of modules: the first that matches.
  std::vector<std::pair<std::string, double>> scales;
  /// Globs over what is trained beside adapters.
  Sets also = {};
  bool tied = false;
  /// The fused module of each projection that shares A.
  std::map<std::string, std::string> fused = {};
};
static const std::map<std::string, std::string> Phi3Modules{{"q_proj", "qkv_proj"},
                                                            {"k_proj", "qkv_proj"},
                                                            {"v_proj", "qkv_proj"},
                                                            {"gate_proj", "gate_up_proj"},
                                                            {"up_proj", "gate_up_proj"}};
static const std::vector<AdapterRow> AdapterRows{
    {"llama", {}, {{"*_proj", 2}}},
    {"tied llama, queries and values",
     {"adapter.match=[\"*.q_proj.weight\", \"*.v_proj.weight\"]"},
     {{"*.q_proj", 2}, {"*.v_proj", 2}},
     {},
     true},
    {"llama, rslora, down projections of their own",
     {"adapter.alpha=3", "adapter.scaling=rslora",
      "adapter.override=[{match=\"*.down_proj.weight\", rank=2, alpha=2}]"},
     {{"*.down_proj", 2 / std::sqrt(2.0)}, {"*_proj", 3 / std::sqrt(4.0)}}},
    {"qwen2, norms too",
     {"model.family=qwen2", "adapter.train_also=[\"*norm.weight\"]"},
     {{"*_proj", 2}},
     {"*norm.weight"}},
    {"qwen3, the head too",
     {"model.family=qwen3", "adapter.train_also=[\"lm_head.weight\"]"},
     {{"*_proj", 2}},
     {"lm_head.weight"}},
    // A scale of 1: queries and keys of one x A^T have large products, and with a larger one f32 itself moves far from
    // f64 in 30 steps.
    {"llama, one A for each module of Phi-3",
     {"adapter.fused=[\"qkv_proj\", \"gate_up_proj\"]", "adapter.alpha=2", "adapter.scaling=rslora"},
     {{"*_proj", 1}},
     {},
     false,
     Phi3Modules},
    {"tied llama, one A for attention alone",
     {"adapter.fused=[\"qkv_proj\"]", "adapter.alpha=4", "adapter.override=[{match=\"*.gate_proj.weight\", rank=3}]"},
     {{"*.gate_proj", 4 / 3.0}, {"*_proj", 1}},
     {},
     true,
     {{"q_proj", "qkv_proj"}, {"k_proj", "qkv_proj"}, {"v_proj", "qkv_proj"}}},
};

struct AdapterMesh {
  const char* name;
  Sets sets;
};
static const std::vector<AdapterMesh> AdapterMeshes{
    {"one rank", {}},
    {"dp 2", {"mesh.dp=2"}},
    {"tp 2", {"mesh.tp=2"}},
    {"dp 2 x tp 2", {"mesh.dp=2", "mesh.tp=2"}},
    {"replicate 2 x dp 2", {"mesh.replicate=2", "mesh.dp=2"}},
};

/// Policies of recomputation, each with another number of microbatches.
static const std::vector<Sets> AdapterPolicies{
    {"recompute.policy=none", "batch.accumulate=1"},
    {"recompute.policy=full", "batch.accumulate=3"},
    {"recompute.policy=selective", "recompute.save=[\"q_proj\", \"v_proj\", \"attention\"]", "batch.accumulate=2"},
    {"recompute.policy=torchtitan-sac", "batch.accumulate=2", "batch.reduce=last"},
};

static auto Matches(const Sets& globs, const std::string& name) -> bool {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return GlobMatches(glob, name); });
}

static auto IsTrained(const AdapterRow& row, const std::string& parameter) -> bool {
  return Matches({"*.lora_A.weight", "*.lora_B.weight"}, parameter) || Matches(row.also, parameter);
}

static auto Trained(const AdapterRow& row, NamedNumbers tensors) -> NamedNumbers {
  std::erase_if(tensors, [&](const auto& tensor) { return !IsTrained(row, tensor.first); });
  return tensors;
}

static auto CaseOf(const AdapterRow& row, const AdapterMesh& mesh, const Sets& more) -> TrainingCase {
  TrainingCase result{.name = fmt::format("{}, {}, {}", row.name, mesh.name, more.empty() ? "" : more[0]),
                      .tied = row.tied,
                      .sets = {"model.ffn=102", "model.seq=34", "model.norm_eps=1e-5", "adapter.kind=lora",
                               "adapter.rank=4", "adapter.alpha=8"},
                      .tables = NonzeroB};
  if (Matches({"*qwen2*"}, row.name)) {
    result.tables += "[[init.rule]]\nmatch = \"*.bias\"\nvalue = \"normal(0, 0.5)\"\n";
  }
  for (const Sets* sets : {&row.sets, &mesh.sets, &more}) {
    result.sets.insert(result.sets.end(), sets->begin(), sets->end());
  }
  return result;
}

/// Runs a case, and tells LibTorch's model of the scales that the row expects.
static auto TrainRow(const AdapterRow& row, const TrainingCase& training_case) -> TrainingRun {
  TrainingRun run = RunTraining(training_case);
  constexpr std::string_view B = ".lora_B.weight";
  for (const auto& [name, numbers] : run.initial) {
    if (name.ends_with(B)) {
      const std::string module = name.substr(0, name.size() - B.size());
      const auto scale =
          std::ranges::find_if(row.scales, [&](const auto& own) { return GlobMatches(own.first, module); });
      EXPECT_NE(scale, row.scales.end()) << "an adapter of " << module;
      const size_t last = module.rfind('.') + 1;
      const auto fused = row.fused.find(module.substr(last));
      run.shape.adapters[module] = {.scale = scale->second,
                                    .shared = fused == row.fused.end() ? "" : module.substr(0, last) + fused->second};
    }
  }
  return run;
}

TEST(Adapters, GradientsEqualAutograd) {
  for (const AdapterRow& row : AdapterRows) {
    for (const AdapterMesh& mesh : AdapterMeshes) {
      for (const Sets& policy : AdapterPolicies) {
        const TrainingCase training_case = CaseOf(row, mesh, policy);
        const TrainingRun run = TrainRow(row, training_case);
        const LossAndGradients f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
        const LossAndGradients f32 = TorchGradients(Precision::F32, run.shape, run.initial, run.batches[0]);
        EXPECT_NEAR(run.losses[0], f64.loss, LossTolerance * f64.loss) << training_case.name;
        const NamedNumbers expected = Trained(row, f64.gradients);
        const NamedNumbers actual = Trained(row, run.gradients);
        ExpectClose(training_case.name, actual, expected, Trained(row, f32.gradients), expected, GradientTolerance);
        double squares = 0;
        for (const auto& [name, numbers] : actual) {
          for (const double number : numbers) {
            squares += number * number;
          }
        }
        EXPECT_NEAR(run.grad_norms[0], std::sqrt(squares), 1e-12 * std::sqrt(squares)) << training_case.name;
      }
    }
  }
}

TEST(Adapters, GradientsInBf16AreAsCloseAsLibTorchs) {
  for (const AdapterRow& row : AdapterRows) {
    const TrainingCase training_case =
        CaseOf(row, AdapterMeshes[3], {"precision.compute=bf16", "precision.frozen=bf16", "batch.accumulate=3"});
    const TrainingRun run = TrainRow(row, training_case);
    const NamedNumbers f64 =
        Trained(row, TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]).gradients);
    const NamedNumbers bf16 =
        Trained(row, TorchGradients(Precision::BF16, run.shape, run.initial, run.batches[0]).gradients);
    ExpectClose(training_case.name, Trained(row, run.gradients), f64, bf16, f64, {.floor = 0, .times = 2});
  }
}

TEST(Adapters, EqualLibTorchAdamwOverThirtySteps) {
  for (const AdapterRow& row : AdapterRows) {
    for (const AdapterMesh& mesh : AdapterMeshes) {
      TrainingCase training_case =
          CaseOf(row, mesh,
                 {fmt::format("optimizer.lr={}", AdapterLr), fmt::format("optimizer.clip_norm={}", AdapterClipNorm),
                  fmt::format("optimizer.eps={}", AdapterEps), fmt::format("train.steps={}", AdapterSteps),
                  "batch.accumulate=2"});
      training_case.steps = AdapterSteps;
      // Every step sees most of the samples again, so the loss falls.
      training_case.num_tokens = 700;
      const TrainingRun run = TrainRow(row, training_case);
      TorchTrainingSettings settings{.beta1 = 0.9,
                                     .beta2 = 0.95,
                                     .eps = AdapterEps,
                                     .clip_norm = AdapterClipNorm,
                                     .lrs = Numbers(AdapterSteps, AdapterLr),
                                     .groups = {}};
      for (const auto& [name, numbers] : run.initial) {
        if (IsTrained(row, name)) {
          settings.groups[name] = {.weight_decay = 0.1, .lr_scale = 1};
        }
      }
      const TorchTraining f64 = TorchTrain(Precision::F64, run.shape, run.initial, run.batches, settings);
      EXPECT_LT(f64.losses.back(), f64.losses.front() - 0.3) << training_case.name << ": nothing was learned";
      EXPECT_GT(f64.grad_norms.front(), AdapterClipNorm) << training_case.name << ": nothing was clipped";
      double of_losses = 0;
      double of_norms = 0;
      for (size_t step = 0; step < f64.losses.size(); ++step) {
        of_losses = std::max(of_losses, std::abs(run.losses[step] / f64.losses[step] - 1));
        of_norms = std::max(of_norms, std::abs(run.grad_norms[step] / f64.grad_norms[step] - 1));
      }
      EXPECT_LE(of_losses, AdapterLossTolerance) << training_case.name;
      EXPECT_LE(of_norms, AdapterNormTolerance) << training_case.name;
      fmt::print("{}: losses of {} steps differ by {:.2g} at most, norms by {:.2g}\n", training_case.name, AdapterSteps,
                 of_losses, of_norms);
      for (const auto& [name, numbers] : run.parameters) {
        EXPECT_EQ(SameBits(numbers, run.initial.at(name)), !IsTrained(row, name)) << training_case.name << ": " << name;
        EXPECT_EQ(std::isnan(run.exp_avg.at(name)[0]), !IsTrained(row, name)) << training_case.name << ": " << name;
      }
    }
  }
}

/// Returns true if each number is one of bf16.
static auto AreBf16(const Numbers& numbers) -> bool {
  return std::ranges::all_of(
      numbers, [](double number) { return (std::bit_cast<uint32_t>(static_cast<float>(number)) & 0xffff) == 0; });
}

// B begins as 0: the first loss is the base's. A begins the same whatever the mesh; the base may be kept in bf16 where
// the adapters are kept in fp32.
TEST(Adapters, BeginAsTheBase) {
  const AdapterRow& row = AdapterRows[0];
  std::optional<NamedNumbers> first;
  for (const AdapterMesh& mesh : AdapterMeshes) {
    for (const char* frozen : {"precision.frozen=fp32", "precision.frozen=bf16"}) {
      TrainingCase training_case = CaseOf(row, mesh, {frozen});
      training_case.tables.clear();
      const TrainingRun run = TrainRow(row, training_case);
      LlamaShape base = run.shape;
      base.adapters.clear();
      EXPECT_NEAR(run.losses[0], TorchLoss(Precision::F64, base, run.initial, run.batches[0]),
                  LossTolerance * run.losses[0])
          << training_case.name;
      const NamedNumbers trained = Trained(row, run.initial);
      first = first ? first : trained;
      EXPECT_TRUE(SameBits(trained, *first)) << training_case.name;
      const bool is_narrow = std::string_view(frozen).ends_with("bf16");
      for (const auto& [name, numbers] : run.initial) {
        const bool is_zero = name.ends_with(".lora_B.weight");
        EXPECT_EQ(AreBf16(numbers), is_zero || (is_narrow && !IsTrained(row, name))) << name;
        EXPECT_EQ(numbers == Numbers(numbers.size(), 0), is_zero) << name;
        if (name.ends_with(".lora_A.weight")) {
          // 1 / sqrt(inputs), where torch has it.
          const double bound = 1 / std::sqrt(static_cast<double>(numbers.size()) / 4);
          const double largest = std::ranges::max(numbers, {}, [](double number) { return std::abs(number); });
          EXPECT_LE(std::abs(largest), bound * (1 + 1e-6)) << name;
          EXPECT_GE(std::abs(largest), bound * 0.9) << name;
        }
      }
    }
  }
}

}  // namespace shardc
