// Recipes that `shardc new --from DIR --adapter` writes: what they say, that they are accepted, and that they train.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class NewAdapter : public testing::Test {
 protected:
  NewAdapter() { std::filesystem::remove(training_ / "tiny.toml"); }

  auto New(const std::vector<std::string>& more) const -> Outcome {
    std::vector<std::string> command{SHARDC_BINARY_DIR "/shardc", "new", training_ / "tiny.toml"};
    command.insert(command.end(), more.begin(), more.end());
    return RunProcess(command);
  }

  Training training_;
};

TEST_F(NewAdapter, TrainsBesideModelInBf16) {
  PublishedFiles::Make("llama", "BF16").Write(training_ / "model");
  const Outcome made = New({"--from", training_ / "model", "--adapter"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_THAT(ReadText(training_ / "tiny.toml"),
              AllOf(HasSubstr("[adapter]\n"), HasSubstr("kind = \"lora\"\nrank = 16\n"), HasSubstr("alpha = 32\n"),
                    HasSubstr("compute = \"bf16\"\n"), HasSubstr("frozen = \"bf16\"\n"), HasSubstr("2e-4 * warmup"),
                    HasSubstr("/model\" }\n\n[adapter]\n"), Not(HasSubstr("3e-4"))));
  const Outcome checked = RunProcess(training_.Command("check", {"--strict"}));
  EXPECT_EQ(checked.status, 0) << checked.err;
  EXPECT_EQ(checked.err, "");
  const Sets few{"train.steps=20", "checkpoint.every=20", "train.log_every=1", "optimizer.lr=0.01", "run.threads=1"};
  const Outcome run = training_.Run("run", few);
  ASSERT_EQ(run.status, 0) << run.err;
  const Metrics metrics = ReadMetrics(training_ / "run");
  ASSERT_EQ(metrics.steps.size(), 20U);
  EXPECT_LT(metrics.steps.back().loss, metrics.steps.front().loss);
  const Outcome merged = RunProcess({SHARDC_BINARY_DIR "/shardc", "export", training_ / "run", "-o",
                                     training_ / "merged", "--merge", "--dtype", "bf16"});
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_THAT(merged.out, HasSubstr("14 with their adapters added"));
}

TEST_F(NewAdapter, KeepsTypesAndModulesOfOtherModels) {
  PublishedFiles mixed = PublishedFiles::Make("llama", "BF16");
  mixed.tensors["model.norm.weight"] = PublishedFiles::Make("llama", "F32").tensors.at("model.norm.weight");
  for (const auto& [files, fused] : {std::pair(PublishedFiles::Make("qwen2", "F32"), 0),
                                     std::pair(PublishedFiles::Make("llama", "F16").Fused(), 1), std::pair(mixed, 0)}) {
    std::filesystem::remove_all(training_ / "model");
    std::filesystem::remove(training_ / "tiny.toml");
    files.Write(training_ / "model");
    ASSERT_EQ(New({"--from", training_ / "model", "--adapter"}).status, 0);
    const std::string recipe = ReadText(training_ / "tiny.toml");
    EXPECT_THAT(recipe, AllOf(HasSubstr("[adapter]\n"), HasSubstr("compute = \"fp32\"\n"), Not(HasSubstr("frozen ="))));
    EXPECT_EQ(recipe.find("\nfused = [\"qkv_proj\", \"gate_up_proj\"]\n") != std::string::npos, fused == 1);
    EXPECT_EQ(RunProcess(training_.Command("check", {"--strict"})).err, "");
  }
}

TEST_F(NewAdapter, HasRankOfNarrowProjections) {
  ASSERT_EQ(New({"--from", SHARDC_SOURCE_DIR "/tests/support/published", "--adapter"}).status, 0);
  EXPECT_THAT(ReadText(training_ / "tiny.toml"), HasSubstr("rank = 8\n"));
}

TEST_F(NewAdapter, NeedsModel) {
  const auto why = [&](const std::vector<std::string>& more) {
    const Outcome made = New(more);
    EXPECT_EQ(made.status, static_cast<int>(ExitCode::Usage));
    EXPECT_FALSE(std::filesystem::exists(training_ / "tiny.toml"));
    return made.err;
  };
  EXPECT_THAT(why({"--adapter"}), HasSubstr("name its directory by --from DIR"));
  EXPECT_THAT(why({"--adapter", "--preset", "llama3-8b"}), HasSubstr("name its directory by --from DIR"));
  WriteText(training_ / "train.toml", "[model]\n");
  EXPECT_THAT(why({"--adapter", "--from", training_ / "train.toml"}),
              HasSubstr("is a configuration; name the model's"));
}

TEST_F(NewAdapter, SaysWhatQuantizedBaseTakesInBf16) {
  PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  files.Write(training_ / "model");
  ASSERT_EQ(New({"--from", training_ / "model", "--adapter"}).status, 0);
  const std::vector<std::string> planned =
      training_.Command("plan", {"--explain", "--format", "json", "--set", "mesh.dp=2"});
  const auto json = nlohmann::json::parse(RunProcess(planned).out);
  const auto memory = [&](const char* share) { return FormatMemory(Bytes{json.at(share).at("state_bytes")}); };
  const std::string takes = fmt::format("a base in bf16 takes {} of each of 2 ranks, and what is trained beside it {}",
                                        memory("frozen"), memory("trained"));
  for (const char* word : {"adapter.load_in_4bit=true", "adapter.kind=qlora"}) {
    const Outcome refused = RunProcess(training_.Command("check", {"--set", word, "--set", "mesh.dp=2"}));
    EXPECT_EQ(refused.status, static_cast<int>(ExitCode::RecipeRejected));
    EXPECT_THAT(refused.err, AllOf(HasSubstr("[fewer-bits]"), HasSubstr(takes))) << word;
  }
  files.config["quantization_config"] = {{"bits", 4}};
  files.Write(training_ / "model");
  const Outcome refused = RunProcess(training_.Command("check", {"--set", "mesh.dp=2"}));
  EXPECT_EQ(refused.status, static_cast<int>(ExitCode::RecipeRejected));
  EXPECT_THAT(refused.err, AllOf(HasSubstr("[seed-fewer-bits]"), HasSubstr(takes)));
  std::filesystem::remove(training_ / "tiny.toml");
  const Outcome not_made = New({"--from", training_ / "model"});
  EXPECT_EQ(not_made.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(not_made.err, AllOf(HasSubstr("the weights are quantized"), HasSubstr("a base in bf16 takes "),
                                  HasSubstr(" of the one rank, and what is ")));
}

}  // namespace
}  // namespace shardc
