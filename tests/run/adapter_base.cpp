// Checkpoints of adapters leave their base to the files of the seed: what they hold, that all that reads them has the
// bits of checkpoints that hold the base, and what is refused if the base is another one, or gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/published_files.h"
#include "tests/support/repository.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Sets TwoSteps{"train.eval_every=0", "checkpoint.every=2", "checkpoint.keep=0", "train.steps=2"};

auto Appended(Sets sets, const Sets& more) -> Sets {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

auto AskShardc(std::vector<std::string> arguments) -> Outcome {
  arguments.insert(arguments.begin(), SHARDC_BINARY_DIR "/shardc");
  return RunProcess(arguments);
}

auto BytesOfFilesIn(const std::string& directory) -> int64_t {
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    bytes += static_cast<int64_t>(entry.file_size());
  }
  return bytes;
}

/// Changes the byte of a file before its last one.
auto ChangeByteNearEnd(const std::string& path) -> void {
  std::string bytes = ReadText(path);
  bytes[bytes.size() - 2] ^= 1;
  WriteText(path, bytes);
}

/// A run of adapters of a model of Hugging Face, and the same run whose checkpoints hold the base.
class AdapterBaseRuns : public testing::Test {
 protected:
  AdapterBaseRuns() {
    const Training trained(TwoSteps);
    EXPECT_EQ(trained.Run().status, 0);
    model_ = training_ / "model";
    EXPECT_EQ(AskShardc({"export", trained / "run", "-o", model_}).status, 0);
  }

  /// Returns the sets of a run that begins so.
  static auto Begins(const std::string& first, const Sets& more = {}) -> Sets {
    return Appended(Appended(TwoSteps, {"init.rule=[]", "start.run_id=tuned", "start.first={ " + first + " }",
                                        "adapter.kind=lora", "adapter.rank=4", "adapter.alpha=8", "optimizer.lr=0.01"}),
                    more);
  }
  auto FromModel(const Sets& more = {}) const -> Sets { return Begins(fmt::format("seed = \"{}\"", model_), more); }
  auto Run(const std::string& run, const Sets& sets) const -> Outcome { return training_.Run(run, sets); }
  auto RunWell(const std::string& run, const Sets& sets) const -> void {
    const Outcome outcome = Run(run, sets);
    EXPECT_EQ(outcome.status, 0) << run << ": " << outcome.err;
  }
  /// Runs the plan of these sets whose checkpoints leave out nothing.
  auto RunWhole(const std::string& run, const Sets& sets) const -> void {
    std::vector<std::string> arguments{"-o", training_ / "whole.plan"};
    for (const std::string& set : sets) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    const Outcome planned = RunProcess(training_.Command("plan", arguments));
    ASSERT_EQ(planned.status, 0) << planned.err;
    std::string plan = ReadText(training_ / "whole.plan");
    const std::string left_out = " in_base=true";
    ASSERT_THAT(plan, HasSubstr(left_out));
    for (size_t at = plan.find(left_out); at != std::string::npos; at = plan.find(left_out)) {
      plan.erase(at, left_out.size());
    }
    WriteText(training_ / "whole.plan", plan);
    const Outcome outcome = AskShardc({"run", training_ / "whole.plan", "--run-dir", training_ / run});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
  }
  auto CheckpointOf(const std::string& run, int64_t step = 2) const -> std::string {
    return training_ / run + "/checkpoints/" + CheckpointNameOf(step);
  }
  auto ManifestOf(const std::string& run, int64_t step = 2) const -> json {
    return json::parse(ReadText(CheckpointOf(run, step) + "/manifest.json"));
  }
  /// Returns the bytes of an adapter, or of a merged model.
  auto Exported(const std::string& run, const char* how) const -> std::string {
    const std::string output = training_ / ("exported-" + run);
    std::filesystem::remove_all(output);
    const Outcome outcome = AskShardc({"export", training_ / run, "-o", output, how});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return ReadText(output + (how == std::string("--merge") ? "/model.safetensors" : "/adapter_model.safetensors"));
  }
  /// Expects that a restart, an evaluation and a merge are refused by these words.
  auto ExpectRefused(const Sets& sets, const std::string& words) const -> void {
    const Outcome restart = Run("run", Appended(sets, {"train.steps=4"}));
    EXPECT_EQ(restart.status, static_cast<int>(ExitCode::Checkpoint));
    EXPECT_THAT(restart.err, AllOf(HasSubstr(CheckpointOf("run")), HasSubstr(words)));
    std::vector<std::string> arguments{"--checkpoint", CheckpointOf("run")};
    for (const std::string& set : sets) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    const Outcome evaluated = RunProcess(training_.Command("eval", arguments));
    EXPECT_EQ(evaluated.status, static_cast<int>(ExitCode::Checkpoint)) << evaluated.out;
    EXPECT_THAT(evaluated.err, HasSubstr(words));
    const Outcome merged = AskShardc({"export", training_ / "run", "-o", training_ / "merged", "--merge"});
    EXPECT_EQ(merged.status, static_cast<int>(ExitCode::Checkpoint));
    EXPECT_THAT(merged.err, HasSubstr(words));
    EXPECT_FALSE(std::filesystem::exists(training_ / "merged"));
    const Outcome verified = AskShardc({"checkpoint", "verify", training_ / "run"});
    EXPECT_EQ(verified.status, static_cast<int>(ExitCode::Checkpoint));
    EXPECT_THAT(verified.out, HasSubstr(words));
  }

  Training training_;
  std::string model_;
};

TEST_F(AdapterBaseRuns, HoldWhatIsTrainedAlone) {
  const Sets sets = FromModel({"adapter.train_also=[\"*norm.weight\"]"});
  RunWell("run", sets);
  RunWhole("whole", sets);
  const json left = ManifestOf("run");
  EXPECT_EQ(left.at("version"), 4);
  EXPECT_EQ(left.at("base").at("path"), model_);
  EXPECT_EQ(ManifestOf("whole").at("version"), 3);
  int64_t elements = 0;
  for (const auto& [name, tensor] : left.at("tensors").items()) {
    const bool is_trained = name.find("lora_") != std::string::npos || name.ends_with("norm.weight");
    EXPECT_EQ(tensor.contains("base"), !is_trained) << name;
    if (!is_trained) {
      elements += tensor.at("shape")[0].get<int64_t>() * tensor.at("shape")[1].get<int64_t>();
    }
  }
  const int64_t saved = BytesOfFilesIn(CheckpointOf("whole")) - BytesOfFilesIn(CheckpointOf("run"));
  EXPECT_GT(saved, 4 * elements);
  const Outcome written = RunProcess({"/usr/bin/env", "python3", RepositoryPath("tools/import_checkpoint.py"), "--to",
                                      "dcp", CheckpointOf("run"), "-o", training_ / "dcp", "--names-of",
                                      "torchtitan-0.3", "--shardc", SHARDC_BINARY_DIR "/shardc"});
  EXPECT_NE(written.status, 0);
  EXPECT_THAT(written.err, HasSubstr("leaves the base of its adapters in " + model_));
  RecordProperty("bytes", static_cast<int>(BytesOfFilesIn(CheckpointOf("run"))));
  RecordProperty("bytes_with_base", static_cast<int>(BytesOfFilesIn(CheckpointOf("whole"))));
}

TEST_F(AdapterBaseRuns, HaveTheBitsOfWholeCheckpoints) {
  const Sets sets = FromModel({"train.steps=4"});
  RunWell("run", sets);
  RunWhole("whole", sets);
  EXPECT_EQ(Exported("run", "--merge"), Exported("whole", "--merge"));
  EXPECT_EQ(Exported("run", "--adapter"), Exported("whole", "--adapter"));
  const Outcome same = AskShardc({"checkpoint", "diff", CheckpointOf("run", 4), CheckpointOf("whole", 4)});
  EXPECT_EQ(same.status, 0) << same.out << same.err;
  EXPECT_THAT(same.out, Not(HasSubstr("not compared")));
  const Training asked(sets);
  std::filesystem::copy(training_ / "tokens.bin", asked / "tokens.bin",
                        std::filesystem::copy_options::overwrite_existing);
  WriteBin(asked / "ids.bin", EasyTokens(20));
  std::vector<std::string> losses;
  std::vector<std::string> logits;
  for (const char* run : {"run", "whole"}) {
    const Outcome evaluated = asked.Eval(CheckpointOf(run, 4));
    EXPECT_EQ(evaluated.status, 0) << evaluated.err;
    losses.push_back(evaluated.out);
    const Outcome written =
        RunProcess(asked.Command("logits", {"--checkpoint", CheckpointOf(run, 4), "--tokens", asked / "ids.bin", "-o",
                                            asked / "logits.safetensors"}));
    EXPECT_EQ(written.status, 0) << written.err;
    logits.push_back(ReadText(asked / "logits.safetensors"));
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(logits[0], logits[1]);
  // Each mesh goes on alike from both.
  for (const Sets& mesh : {Sets{"mesh.dp=2"}, Sets{"mesh.dp=1", "mesh.tp=2"}, Sets{"mesh.dp=1", "mesh.replicate=2"}}) {
    for (const char* run : {"run", "whole"}) {
      const std::string again = std::string(run) + "-again";
      std::filesystem::remove_all(training_ / again);
      std::filesystem::create_directories(training_ / again + "/checkpoints");
      std::filesystem::copy(CheckpointOf(run), CheckpointOf(again));
      if (run == std::string("whole")) {
        // Else nobody knows that no stage before trained more than adapters.
        std::filesystem::copy(training_ / run + "/seed.json", training_ / again);
      }
      RunWell(again, Appended(sets, mesh));
      EXPECT_EQ(ManifestOf(again, 4).contains("base"), run == std::string("run"));
    }
    EXPECT_EQ(Exported("run-again", "--adapter"), Exported("whole-again", "--adapter"));
  }
  EXPECT_EQ(AskShardc({"checkpoint", "verify", training_ / "run-again"}).status, 0);
}

TEST_F(AdapterBaseRuns, FindABaseThatHasMoved) {
  RunWell("run", FromModel());
  std::filesystem::rename(model_, training_ / "elsewhere");
  ExpectRefused(FromModel(), "its base is gone: " + model_);
  // What needs no base does without.
  EXPECT_NE(Exported("run", "--adapter"), "");
  for (const char* action : {"list", "show"}) {
    const Outcome outcome = AskShardc({"checkpoint", action, training_ / "run"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, Not(HasSubstr("damaged")));
  }
  const Sets moved = Begins(fmt::format("seed = \"{}\"", training_ / "elsewhere"), {"train.steps=4"});
  RunWell("run", moved);
  EXPECT_EQ(ManifestOf("run", 4).at("base").at("path"), training_ / "elsewhere");
  std::filesystem::rename(training_ / "elsewhere", training_ / "far");
  std::filesystem::create_directory_symlink(training_ / "far", training_ / "elsewhere");
  EXPECT_NE(Exported("run", "--merge"), "");
}

TEST_F(AdapterBaseRuns, RefuseAnotherBase) {
  RunWell("run", FromModel());
  const std::string other = training_ / "other";
  EXPECT_EQ(AskShardc({"export", training_ / "run", "-o", other, "--merge", "--dtype", "bf16"}).status, 0);
  const Outcome named = Run("run", Begins(fmt::format("seed = \"{}\"", other), {"train.steps=4"}));
  EXPECT_EQ(named.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(named.err, HasSubstr("the recipe names a seed that the run did not begin from"));
  const std::string digest = ManifestOf("run").at("base").at("digest");
  std::filesystem::rename(model_, training_ / "away");
  std::filesystem::rename(other, model_);
  const Outcome replaced = AskShardc({"export", training_ / "run", "-o", training_ / "merged", "--merge"});
  EXPECT_EQ(replaced.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(replaced.err, AllOf(HasSubstr("its base is another model now: the digest of " + model_),
                                  HasSubstr("the run began from " + digest)));
}

TEST_F(AdapterBaseRuns, RefuseABaseOfWhichAByteChanged) {
  RunWell("run", FromModel());
  ChangeByteNearEnd(model_ + "/model.safetensors");
  ExpectRefused(FromModel(), "its base has changed: model.norm.weight in " + model_);
  const Outcome compared = AskShardc({"checkpoint", "diff", training_ / "run", training_ / "run"});
  EXPECT_THAT(compared.err, HasSubstr("its base has changed"));
}

TEST_F(AdapterBaseRuns, LaterStagesNeedTheBaseAlone) {
  RunWell("run", FromModel());
  RunWhole("whole", FromModel());
  struct Case {
    const char* how;
    const char* more;
  };
  for (const Case& c : {Case{"seed", ""}, Case{"continue", ", reset = []"}}) {
    std::vector<std::string> adapters;
    for (const char* run : {"run", "whole"}) {
      const Sets sets = Begins(fmt::format("{} = \"{}\"{}", c.how, CheckpointOf(run), c.more), {"start.run_id=later"});
      std::filesystem::remove_all(training_ / "later");
      RunWell("later", sets);
      const json manifest = ManifestOf("later");
      // A checkpoint that holds all is a base too, but not if the run continues it.
      const bool has_base = run == std::string("run") || c.how == std::string("seed");
      ASSERT_EQ(manifest.contains("base"), has_base) << run << " " << c.how;
      if (has_base) {
        EXPECT_EQ(manifest.at("base").at("path"), run == std::string("run") ? model_ : CheckpointOf(run));
      }
      adapters.push_back(Exported("later", "--adapter"));
      adapters.push_back(Exported("later", "--merge"));
      if (run == std::string("run")) {
        std::filesystem::rename(training_ / "run", training_ / "gone");
        RunWell("later", Appended(sets, {"train.steps=4"}));
        std::filesystem::rename(training_ / "gone", training_ / "run");
      }
    }
    EXPECT_EQ(adapters[0], adapters[2]);
    EXPECT_EQ(adapters[1], adapters[3]);
  }
}

TEST_F(AdapterBaseRuns, HoldWhatIsDrawnOrRounded) {
  const Sets drawn_head =
      Begins(fmt::format("seed = \"{}\", missing = [\"lm_head.weight\"], unused = [\"lm_head.weight\"]", model_),
             {R"--(init.rule=[{ match = "lm_head.weight", value = "normal(0, 0.02)" }])--"});
  RunWell("drawn", drawn_head);
  const json drawn = ManifestOf("drawn").at("tensors");
  EXPECT_TRUE(drawn.at("lm_head.weight").contains("layout"));
  EXPECT_TRUE(drawn.at("model.norm.weight").contains("base"));
  RunWell("drawn", Appended(drawn_head, {"train.steps=4"}));
  RunWell("rounded", FromModel({"precision.frozen=bf16"}));
  EXPECT_EQ(ManifestOf("rounded").at("version"), 3);
  // What was drawn has no seed at all.
  RunWell("scratch", Appended(TwoSteps, {"adapter.kind=lora", "adapter.rank=4", "adapter.alpha=8"}));
  EXPECT_EQ(ManifestOf("scratch").at("version"), 3);
}

TEST_F(AdapterBaseRuns, WidenRowsOfFusedTensors) {
  PublishedFiles::Make("llama", "BF16").Fused().Write(training_ / "fused");
  std::filesystem::remove(training_ / "tiny.toml");
  ASSERT_EQ(AskShardc({"new", training_ / "tiny.toml", "--from", training_ / "fused"}).status, 0);
  const Sets sets{
      "mesh.dp=2",         "model.seq=32",   "run.threads=1",   "train.steps=2",         "checkpoint.every=1",
      "adapter.kind=lora", "adapter.rank=2", "adapter.alpha=4", "precision.frozen=fp32", "start.run_id=tuned"};
  RunWell("run", sets);
  RunWhole("whole", sets);
  const json queries = ManifestOf("run").at("tensors").at("model.layers.0.self_attn.k_proj.weight");
  EXPECT_EQ(queries.at("base").at("tensor"), "model.layers.0.self_attn.qkv_proj.weight");
  EXPECT_GT(queries.at("base").at("row"), 0);
  EXPECT_EQ(Exported("run", "--merge"), Exported("whole", "--merge"));
  RunWell("run", Appended(sets, {"train.steps=3", "mesh.dp=1", "batch.accumulate=2"}));
}

TEST_F(AdapterBaseRuns, NameABlockOfTheBaseThatIsDamaged) {
  RunWell("first", Appended(TwoSteps, {"start.run_id=first", "mesh.dp=1", "mesh.tp=2"}));
  const std::string base = CheckpointOf("first");
  RunWell("run", Begins(fmt::format("seed = \"{}\"", base)));
  EXPECT_EQ(ManifestOf("run").at("base").at("path"), base);
  EXPECT_NE(Exported("run", "--merge"), "");
  RunWell("run", Begins(fmt::format("seed = \"{}\"", base), {"train.steps=4"}));
  ChangeByteNearEnd(base + "/rank-00000.safetensors");
  const Outcome restart = Run("run", Begins(fmt::format("seed = \"{}\"", base), {"train.steps=6"}));
  EXPECT_EQ(restart.status, static_cast<int>(ExitCode::Checkpoint));
  EXPECT_THAT(restart.err, AllOf(HasSubstr(base + "/rank-00000.safetensors is damaged"),
                                 HasSubstr("it is in the base of the run: put its files back as they were")));
}

}  // namespace
}  // namespace shardc
