// A recipe made of KempnerForge's configuration has its model, its batch and its schedule, and names what it cannot
// say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "compiler/expr/step_evaluator.h"
#include "compiler/recipe/from_config.h"
#include "compiler/recipe/recipe.h"
#include "tests/support/compile_recipe.h"

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

const std::string Model = R"toml(
[model]
dim = 4096
n_layers = 32
n_heads = 32
n_kv_heads = 8
vocab_size = 128256
ffn_dim_multiplier = 1.3
norm_type = "rmsnorm"
max_seq_len = 8192
rope_theta = 500000.0
)toml";

auto Made(const std::string& configuration) -> ConvertedRecipe {
  auto made = RecipeFromConfig("7b.toml", configuration);
  CHECK(made, "{}", made.error().message);
  return *std::move(made);
}

auto CheckedForge(const std::string& configuration) -> Recipe { return CheckedRecipe(Made(configuration).text); }

TEST(FromKempnerForge, CarriesSettingsOver) {
  const Recipe recipe = CheckedForge(Model + R"toml(
[train]
batch_size = 4
seq_len = 8192
max_steps = 500
grad_accum_steps = 2
grad_clip_norm = 0.5
seed = 7
activation_checkpointing = "full"
[optimizer]
name = "adamw"
lr = 2e-4
weight_decay = 0.2
betas = [0.9, 0.98]
[scheduler]
name = "cosine"
warmup_steps = 100
[distributed]
dp_shard = 4
dp_replicate = 2
tp = 2
[checkpoint]
dir = "saved"
interval = 50
keep_last_n = -1
[metrics]
log_interval = 5
)toml");
  EXPECT_EQ(recipe.model.family->text(), "llama");
  EXPECT_EQ(*recipe.model.layers, 32);
  EXPECT_EQ(*recipe.model.hidden, 4096);
  EXPECT_EQ(*recipe.model.kv_heads, 8);
  EXPECT_EQ(*recipe.model.ffn, 14336);
  EXPECT_EQ(*recipe.model.vocab, 128256);
  EXPECT_EQ(*recipe.model.seq, 8192);
  EXPECT_EQ(*recipe.model.rope_theta, 500000);
  EXPECT_EQ(recipe.init.scheme->text(), "gpt2");
  EXPECT_EQ(*recipe.init.seed, 7);
  EXPECT_EQ(*recipe.data.seed, 7);
  EXPECT_EQ(*recipe.batch.micro, 4);
  EXPECT_EQ(*recipe.batch.accumulate, 2);
  EXPECT_EQ(*recipe.mesh.dp, 4);
  EXPECT_EQ(*recipe.mesh.replicate, 2);
  EXPECT_EQ(*recipe.mesh.tp, 2);
  EXPECT_EQ(recipe.precision.compute->text(), "bf16");
  EXPECT_EQ(recipe.recompute.policy->text(), "full");
  EXPECT_EQ(*recipe.optimizer.clip_norm, 0.5);
  EXPECT_EQ(*recipe.optimizer.weight_decay, 0.2);
  EXPECT_THAT(*recipe.optimizer.betas, ElementsAre(0.9, 0.98));
  EXPECT_EQ(*recipe.checkpoint.dir, "saved");
  EXPECT_EQ(*recipe.checkpoint.every, 50);
  EXPECT_EQ(*recipe.checkpoint.keep, 0);
  EXPECT_EQ(*recipe.train.steps, 500);
  EXPECT_EQ(*recipe.train.log_every, 5);
}

TEST(FromKempnerForge, TakesDefaultsOfTheTrainer) {
  const Recipe recipe = CheckedForge("[model]\ndim = 1024\nn_layers = 4\nn_heads = 8\nqk_norm = true\n");
  EXPECT_EQ(recipe.model.family->text(), "qwen3");
  EXPECT_EQ(*recipe.model.kv_heads, 8);
  EXPECT_EQ(*recipe.model.ffn, 2816);
  EXPECT_EQ(*recipe.model.vocab, 32000);
  EXPECT_EQ(*recipe.model.seq, 2048);
  EXPECT_EQ(*recipe.batch.micro, 8);
  EXPECT_EQ(*recipe.train.steps, 100000);
  EXPECT_EQ(*recipe.mesh.dp, 8);
  EXPECT_EQ(recipe.recompute.policy->text(), "none");
}

/// Returns the factor of the learning rate in a step of 1000, which warms up for 100.
auto Factor(const std::string& name, double step) -> double {
  constexpr double Warmup = 100;
  constexpr double Least = 0.1;
  if (name == "none") {
    return 1;
  }
  const double rise = std::min(1.0, step / Warmup);
  const double begin = name == "wsd" ? 600 : Warmup;
  const double done = std::clamp((step - begin) / (name == "wsd" ? 200 : 900), 0.0, 1.0);
  if (name == "constant" || step < Warmup) {
    return rise;
  }
  return name == "linear" ? 1 - (1 - Least) * done
         : name == "wsd"  ? Least + (1 - Least) * std::sqrt(1 - done)
         : name == "rex"  ? std::max(Least, std::pow(1 - done, 2))
                          : Least + (1 - Least) * 0.5 * (1 + std::cos(std::numbers::pi * done));
}

TEST(FromKempnerForge, SchedulesAreTheSame) {
  for (const auto& [name, more] : std::vector<std::array<std::string, 2>>{
           {"cosine", ""},
           {"linear", ""},
           {"constant", ""},
           {"none", ""},
           {"rex", "rex_alpha = 2.0\n"},
           {"wsd", "stable_steps = 500\ndecay_steps = 200\nwsd_decay_type = \"sqrt\"\n"}}) {
    const Recipe recipe = CheckedForge(Model + "[train]\nmax_steps = 1000\n[scheduler]\nwarmup_steps = 100\nname = \"" +
                                       name + "\"\n" + more);
    StepEvaluator ours(ParseExpr(recipe.optimizer.lr->text, ExprKind::Schedule).value, 1000);
    for (int64_t step = 0; step < 1000; ++step) {
      ASSERT_NEAR(ours.At(step).value, 3e-4 * Factor(name, static_cast<double>(step)), 1e-15) << name << " at " << step;
    }
  }
}

TEST(FromKempnerForge, NamesWhatItCannotSay) {
  EXPECT_THAT(
      Made(Model + R"toml(
[train]
seq_len = 4096
grad_clip_norm = 2026-01-01
mixed_precision = "fp8"
activation_checkpointing = "selective"
z_loss_weight = 1e-4
[optimizer]
name = "muon"
fused = true
[scheduler]
name = "odd"
[distributed]
pp = 4
cp = 1
[checkpoint]
async_mode = "async_with_pinned_mem"
[eval]
enabled = true
interval = 500
[profiling]
enable = false
start_step = 5
[data]
num_workers = 4
mystery = 1
)toml")
          .not_carried,
      ElementsAre("[train] grad_clip_norm = a date: it is no number; the default 1.0 is taken",
                  StartsWith("[train] activation_checkpointing = \"selective\": it is \"none\" here"),
                  "[train] mixed_precision = \"fp8\": it is bf16 here; types are fp32 and bf16",
                  StartsWith("[optimizer] name = \"muon\": it is adamw here"),
                  StartsWith("[scheduler] name = \"odd\": the rate stays at its peak here"),
                  StartsWith("[eval] enabled = true: name files of ids in data.eval, and write train.eval_every = "
                             "500"),
                  StartsWith("[checkpoint] async_mode = \"async_with_pinned_mem\": saving beside training"),
                  "[data] mystery = 1: nothing is known of this key",
                  StartsWith("[distributed] pp = 4: pipeline parallelism is not offered"),
                  StartsWith("[train] z_loss_weight = 0.0001: a term of the size of logits is not offered")));
}

TEST(FromKempnerForge, RefusesWhatNoFamilyComputes) {
  for (const auto& [lines, fault] : std::vector<std::array<std::string, 2>>{
           {"num_experts = 8",
            "[model] num_experts = 8: models with experts are not offered; `shardc help model.family` "
            "lists the families"},
           {"activation = \"gelu\"",
            "[model] activation = \"gelu\": the families here have SwiGLU, which is \"silu\" there"},
           {"dim_of_heads = 96",
            "[model] dim_of_heads = 96: nothing is known of this key, which looks like a size, a length "
            "or a batch; take it out of the file, and set what it means in the recipe"},
           {"[train]\nseq_len = 0", "[train] seq_len = 0: it has to be a whole number of at least 1"},
           {"[vlm]\narch = \"joint_decoder\"",
            "vlm: models of images and videos are not offered; `shardc help "
            "model.family` lists the families"}}) {
    const auto made = RecipeFromConfig("7b.toml", Model + lines + "\n");
    ASSERT_FALSE(made) << made->text;
    EXPECT_EQ(made.error().code, ExitCode::RecipeRejected);
    EXPECT_EQ(made.error().message, "7b.toml: " + fault);
  }
  EXPECT_EQ(
      RecipeFromConfig("7b.toml", "[model]\nvocab_size = 32000\n[train]\nseq_len = 512\n").error().message,
      "7b.toml does not say which model it trains; write dim, n_layers, n_heads and vocab_size of KempnerForge into "
      "its [model]");
}

}  // namespace
}  // namespace shardc
