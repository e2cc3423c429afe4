// Adapters of modules of several projections: a run begins with what an export of one has, each projection with its
// rows of the module's B.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

class FusedAdapters : public testing::Test {
 protected:
  FusedAdapters()
      : training_({"train.eval_every=0", "checkpoint.every=1", "init.rule=[]", "model.vocab=257", "model.hidden=60",
                   "model.heads=4", "model.kv_heads=2", "model.head_dim=12", "model.ffn=102", "model.norm_eps=1e-5",
                   "model.rope_theta=5000", "optimizer.lr=0.01", "train.steps=2"}) {
    PublishedFiles::Make("llama", "F32").Fused().Write(training_ / "model");
    EXPECT_EQ(Run("tuned", fmt::format("seed = \"{}\"", training_ / "model"), {"mesh.dp=2", "train.steps=4"}).status,
              0);
    EXPECT_EQ(Export("tuned", "adapter").status, 0);
  }

  auto Run(const std::string& run, const std::string& first, Sets more) const -> Outcome {
    more.insert(more.begin(), {"start.run_id=" + run, "start.first={ " + first + " }", "adapter.kind=lora",
                               "adapter.rank=4", "adapter.alpha=8", R"(adapter.fused=["qkv_proj", "gate_up_proj"])",
                               R"(adapter.override=[{match="*.1.mlp.*", rank=2}])"});
    return training_.Run(run, more);
  }
  auto Export(const std::string& run, const std::string& to) const -> Outcome {
    return RunProcess({SHARDC_BINARY_DIR "/shardc", "export", training_ / run, "-o", training_ / to, "--adapter"});
  }
  auto FirstLoss(const std::string& run) const -> double { return ReadMetrics(training_ / run).steps.front().loss; }
  /// Returns a start from a base and the exported adapter.
  auto Beside(const std::string& base) const -> std::string {
    return fmt::format("seed = \"{}\", adapter = \"{}\"", base, training_ / "adapter");
  }

  Training training_;
};

TEST_F(FusedAdapters, BeginFromTheirExport) {
  const std::string tuned = training_ / "tuned";
  ASSERT_EQ(
      Run("stage", fmt::format(R"(continue = "{}", reset = ["moments", "schedule", "data"])", tuned), {"mesh.dp=2"})
          .status,
      0);
  for (const auto& [run, mesh] :
       std::map<std::string, Sets>{{"dp", {"mesh.dp=2"}}, {"tp", {"mesh.dp=1", "mesh.tp=2"}}}) {
    Sets sets = mesh;
    sets.emplace_back("optimizer.lr=0");
    const Outcome begun = Run(run, Beside(training_ / "model"), sets);
    ASSERT_EQ(begun.status, 0) << begun.err;
    EXPECT_NEAR(FirstLoss(run), FirstLoss("stage"), 1e-5 * FirstLoss("stage"));
    ASSERT_EQ(Export(run, run + "-adapter").status, 0);
    for (const char* const file : {"/adapter_model.safetensors", "/adapter_config.json"}) {
      EXPECT_EQ(ReadText(training_ / (run + "-adapter") + file), ReadText(training_ / "adapter" + file)) << run << file;
    }
  }
  EXPECT_EQ(FirstLoss("dp"), FirstLoss("stage"));
  // A restart on another mesh needs no adapter.
  std::filesystem::rename(training_ / "adapter", training_ / "away");
  const Outcome again = Run("dp", Beside(training_ / "model"), {"mesh.dp=1", "mesh.tp=2", "train.steps=3"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out + again.err, HasSubstr("resumed from"));
}

TEST_F(FusedAdapters, BeginBesideCheckpoint) {
  const Outcome whole = training_.Run(
      "whole", {"start.run_id=whole", fmt::format("start.first={{ seed = \"{}\" }}", training_ / "model")});
  ASSERT_EQ(whole.status, 0) << whole.err;
  const Outcome begun = Run("beside", Beside(training_ / "whole/checkpoints/step-00000002"), {"optimizer.lr=0"});
  ASSERT_EQ(begun.status, 0) << begun.err;
  ASSERT_EQ(Export("beside", "same").status, 0);
  EXPECT_EQ(ReadText(training_ / "same/adapter_model.safetensors"),
            ReadText(training_ / "adapter/adapter_model.safetensors"));
}

TEST_F(FusedAdapters, BeginInPart) {
  const std::string first = Beside(training_ / "model");
  // The other projections have their rows of the tensor.
  const Outcome part = Run("part", first + R"(, missing = ["*.k_proj.lora_B.weight"])", {"optimizer.lr=0"});
  ASSERT_EQ(part.status, 0) << part.err;
  ASSERT_EQ(Export("part", "part-adapter").status, 0);
  const std::string name = "base_model.model.model.layers.1.self_attn.qkv_proj.lora_B.weight";
  const auto there = ReadSafetensors(training_ / "adapter/adapter_model.safetensors").at(name);
  const auto here = ReadSafetensors(training_ / "part-adapter/adapter_model.safetensors").at(name);
  constexpr int64_t Rank = 4;
  for (int64_t row = 0; row < 96; ++row) {
    for (int64_t e = row * Rank; e < (row + 1) * Rank; ++e) {
      EXPECT_EQ(here.At(e), row >= 48 && row < 72 ? 0 : there.At(e)) << row;
    }
  }

  const Outcome none =
      Run("none",
          first + R"(, missing = ["*.q_proj.lora_B.weight", "*.k_proj.lora_B.weight", "*.v_proj.lora_B.weight"])", {});
  EXPECT_EQ(none.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(none.err, HasSubstr("nothing uses the seed's model.layers.0.self_attn.qkv_proj.lora_B.weight"));
  EXPECT_THAT(none.err, HasSubstr(R"(unused = ["model.layers.*.self_attn.qkv_proj.lora_B.weight"])"));
  const Outcome wide = Run("wide", first, {R"(adapter.match=["*.q_proj.weight"])"});
  EXPECT_EQ(wide.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(wide.err, HasSubstr("[adapter-fused]"));
}

TEST_F(FusedAdapters, DifferencesNameTheKeys) {
  const std::string first = Beside(training_ / "model");
  struct Case {
    const char* set;
    const char* difference;
  };
  for (const Case& c :
       {Case{"adapter.fused=[]",
             "model.layers.0.mlp.gate_proj.weight has the A of model.layers.0.mlp.gate_up_proj there, an A of its own "
             "here"},
        Case{"adapter.alpha=16", "gate_proj.weight has rank 4 and scale 2 there, rank 4 and scale 4 here"}}) {
    const Outcome outcome = Run("other", first, {c.set});
    EXPECT_EQ(outcome.status, static_cast<int>(ExitCode::RecipeRejected)) << c.set;
    EXPECT_THAT(outcome.err, HasSubstr(c.difference));
    EXPECT_THAT(outcome.err, HasSubstr(R"(rank = 4, alpha = 8.0, fused = ["gate_up_proj", "qkv_proj"], override = [)"));
  }
  // A model with a module for each projection has no place for it.
  PublishedFiles::Make("llama", "F32").Write(training_ / "apart");
  const Outcome apart = Run("apart", Beside(training_ / "apart"), {});
  EXPECT_EQ(apart.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(apart.err, HasSubstr("and the model has no such projection; merge it into its base by peft"));
}

}  // namespace
}  // namespace shardc
