// Runs that begin from a model of Hugging Face, by the programs: the recipe that `new` makes, what a start says and
// puts on record, and what is refused before the first step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <regex>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class PublishedRun : public testing::Test {
 protected:
  PublishedRun() { std::filesystem::remove(training_ / "tiny.toml"); }

  /// Writes the model and makes tiny.toml of it.
  auto Make(const PublishedFiles& files, int num_files) const -> void {
    files.Write(training_ / "model", num_files);
    if (std::filesystem::exists(training_ / "tiny.toml")) {
      return;
    }
    const std::string shardc = training_.Command("new")[0];
    const Outcome made = RunProcess({shardc, "new", training_ / "tiny.toml", "--from", training_ / "model"});
    ASSERT_EQ(made.status, 0) << made.err;
  }
  auto Run(const std::string& run, Sets sets = {}) const -> Outcome {
    sets.insert(sets.begin(), {"mesh.dp=2", "start.run_id=tuned", "model.seq=32", "optimizer.lr=0", "run.threads=1",
                               "train.steps=1", "checkpoint.every=1"});
    return training_.Run(run, sets);
  }

  Training training_;
};

TEST_F(PublishedRun, SaysWhatItLoads) {
  Make(PublishedFiles::Make("llama", "F16"), 3);
  const Outcome run = Run("run");
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr(fmt::format("run tuned: started from seed {} (LlamaForCausalLM of Hugging Face), 21 "
                                             "parameters loaded (21 widened from f16 to f32), 0 generated (",
                                             training_ / "model")));
  const Outcome planned = RunProcess(training_.Command("plan", {"--explain", "--set", "precision.master=bf16"}));
  // Long lines are wrapped.
  const std::string explained = std::regex_replace(planned.out, std::regex("\\n +"), " ");
  EXPECT_THAT(explained, AllOf(HasSubstr("LlamaForCausalLM of Hugging Face: 21 parameters"),
                               HasSubstr("(21 rounded from f16 to bf16)")))
      << planned.err;
}

TEST_F(PublishedRun, RecordsWhatItRead) {
  const PublishedFiles files = PublishedFiles::Make("qwen2", "BF16");
  int64_t bytes = 0;
  for (const auto& [name, tensor] : files.tensors) {
    bytes += std::ssize(tensor.bytes);
  }
  Make(files, 3);
  const auto read_by = [&](const std::string& run) {
    const Outcome outcome = Run(run);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(ReadText(training_ / (run + "/seed.json"))).at("published").at("read");
  };
  const nlohmann::json first = read_by("first");
  EXPECT_EQ(first.at("bytes"), bytes);
  EXPECT_EQ(first.at("directory"), "model");
  EXPECT_EQ(read_by("again"), first);
  PublishedFiles changed = files;
  changed.tensors.at("model.norm.weight").bytes[0] ^= 1;
  changed.Write(training_ / "model", 3);
  EXPECT_NE(read_by("changed"), first);
}

TEST_F(PublishedRun, RecordsFusedTensors) {
  const PublishedFiles files = PublishedFiles::Make("llama", "BF16").Fused();
  int64_t bytes = 0;
  for (const auto& [name, tensor] : files.tensors) {
    bytes += std::ssize(tensor.bytes);
  }
  Make(files, 3);
  const auto read_by = [&](const std::string& run) {
    const Outcome outcome = Run(run);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("21 parameters loaded (21 widened from bf16 to f32), 0 generated"));
    return nlohmann::json::parse(ReadText(training_ / (run + "/seed.json"))).at("published").at("read");
  };
  const nlohmann::json first = read_by("first");
  // Each rank reads its own part, and nothing twice.
  EXPECT_EQ(first.at("bytes"), bytes);
  PublishedFiles changed = files;
  changed.tensors.at("model.layers.0.self_attn.qkv_proj.weight").bytes[80 * 60 * 2] ^= 1;
  changed.Write(training_ / "model", 3);
  EXPECT_NE(read_by("changed"), first);
}

TEST_F(PublishedRun, RestartNeedsNoModel) {
  Make(PublishedFiles::Make("qwen3", "F32", true), 1);
  const Outcome run = Run("run");
  ASSERT_EQ(run.status, 0) << run.err;
  std::filesystem::remove_all(training_ / "model");
  const Outcome again = Run("run", {"train.steps=2"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("run tuned: resumed from "));
  const Outcome elsewhere = Run("elsewhere");
  EXPECT_EQ(elsewhere.status, 3);
  EXPECT_THAT(elsewhere.err, AllOf(HasSubstr(": there is no such folder"), HasSubstr("[seed-unreadable]")));
  const Outcome other = Run("run", {"start.first={ seed = \"other\" }"});
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.err, HasSubstr("and the run began from another one, model of Qwen3ForCausalLM"));
}

TEST_F(PublishedRun, OverflowOfRoundingIsNamed) {
  PublishedFiles files = PublishedFiles::Make("qwen3", "F32", true);
  const float largest = std::numeric_limits<float>::max();
  std::memcpy(&files.tensors.at("model.norm.weight").bytes[0], &largest, sizeof(largest));
  Make(files, 1);
  const Outcome run = Run("run", {"precision.master=bf16"});
  EXPECT_EQ(run.status, 5);
  EXPECT_THAT(
      run.err,
      HasSubstr("; it is loaded from tensor model.norm.weight in f32, and a value beyond bf16 becomes infinite: "
                "--set precision.master=fp32"));
}

TEST_F(PublishedRun, TiedHeadMustHaveEqualBits) {
  PublishedFiles files = PublishedFiles::Make("llama", "BF16", true);
  files.tensors["lm_head.weight"] = files.tensors.at("model.embed_tokens.weight");
  Make(files, 1);
  EXPECT_EQ(Run("equal").status, 0);
  // The last element of the first row that a second rank compares.
  files.tensors["lm_head.weight"].bytes[2 * 15000] ^= 1;
  files.Write(training_ / "model", 1);
  const Outcome refused = Run("different");
  EXPECT_EQ(refused.status, 5);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("config.json says `tie_word_embeddings` true, and element 15000 of "
                                           "lm_head.weight is "),
                                 HasSubstr(", that of model.embed_tokens.weight "), Not(HasSubstr("started from"))));
}

TEST_F(PublishedRun, AnotherModelThanThePlansIsRefused) {
  PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  Make(files, 1);
  std::vector<std::string> arguments{"-o", training_ / "tuned.plan"};
  for (const char* const set : {"train.steps=1", "model.seq=32", "optimizer.lr=0"}) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome planned = RunProcess(training_.Command("plan", arguments));
  ASSERT_EQ(planned.status, 0) << planned.err;
  files.config["rms_norm_eps"] = 1e-3;
  files.Write(training_ / "model", 1);
  const Outcome refused =
      RunProcess({training_.Command("run")[0], "run", training_ / "tuned.plan", "--run-dir", training_ / "run"});
  EXPECT_EQ(refused.status, 5) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("it is not the one that the plan was made for: the digest of its config.json and "
                                     "headers is "));
}

TEST_F(PublishedRun, RestartNamesChangedConfig) {
  PublishedFiles files = PublishedFiles::Make("llama", "BF16");
  Make(files, 1);
  const Outcome run = Run("run");
  ASSERT_EQ(run.status, 0) << run.err;
  files.config["max_position_embeddings"] = 4096;
  files.Write(training_ / "model", 1);
  const Outcome again = Run("run", {"train.steps=2"});
  EXPECT_EQ(again.status, 5) << again.err;
  EXPECT_THAT(again.err, AllOf(HasSubstr("`start.first` names LlamaForCausalLM of Hugging Face (digest "),
                               HasSubstr(" of its config.json and headers), and the run began from LlamaForCausalLM of "
                                         "Hugging Face (digest ")));
}

}  // namespace
}  // namespace shardc
