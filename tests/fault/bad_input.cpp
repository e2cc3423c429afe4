// Bad recipes, plans, token files, checkpoints and surroundings: each is refused with its exit code, its place and what
// to do, and what a run has saved stays as it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "tests/support/plan_samples.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A finished run of 20 steps, checkpoints at 10 and 20, that each case of a test is tried upon.
class BadInput : public testing::Test {
 protected:
  static auto SetUpTestSuite() -> void {
    training_ = std::make_unique<Training>(
        Sets{"train.steps=20", "train.eval_every=0", "checkpoint.every=10", "start.run_id=tiny"});
    const Outcome outcome = training_->Run();
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    ASSERT_THAT(CheckpointsOf(*training_ / "run"), ElementsAre("step-00000010", "step-00000020"));
  }
  static auto TearDownTestSuite() -> void { training_.reset(); }

  /// A copy of the finished run that a test may break.
  static auto CopyOfRun(const std::string& name) -> std::string {
    const std::string path = *training_ / name;
    std::filesystem::copy(*training_ / "run", path, std::filesystem::copy_options::recursive);
    return path;
  }

  static std::unique_ptr<Training> training_;
};
std::unique_ptr<Training> BadInput::training_;

struct RefusedCase {
  Sets sets;
  int status = 0;
  std::vector<std::string> parts;
};

TEST_F(BadInput, RecipesAndRecipesOfOtherRuns) {
  const auto checkpoints = ContentsOf(*training_ / "run/checkpoints");
  const std::string metrics = ReadText(*training_ / "run/metrics.jsonl");
  const std::string plan = ReadText(*training_ / "run/attempts/0001/plan.shardc");
  WriteBin(*training_ / "other.bin", std::vector<uint16_t>(5000, 9));
  WriteText(*training_ / "cut.bin", ReadText(*training_ / "tokens.bin").substr(0, 3000));
  WriteText(*training_ / "words.txt", "these are words, and longer than any header by far" + std::string(2000, '.'));
  const std::string folder = training_->path();
  const std::string newest = folder + "/run/checkpoints/step-00000020";
  const std::vector<RefusedCase> cases{
      {{"model.hiden=64"},
       3,
       {"--set:1:7: error: `hiden` is not known in [model] [unknown-key]", "help: did you mean `hidden`?"}},
      {{"model.layers=two"},
       3,
       {"--set:1:14: error: `layers` is the text \"two\"; expected a whole number [wrong-type]"}},
      {{"model.heads=6", "model.kv_heads=4", "model.head_dim=4"},
       3,
       {"`heads` is 6, `kv_heads` is 4; `heads` is not a multiple of `kv_heads` [heads-not-divisible]", "help: use "}},
      {{"batch.global=13"},
       3,
       {"[batch-not-divisible]", "tiny.toml:12:6: note: `dp` set here", "help: use global = 12 or 14"}},
      // Found before anything else.
      {{R"(data.tokens=["absent.bin"])"},
       3,
       {"token file " + folder + "/absent.bin: No such file or directory",
        "`data.tokens` is relative to the recipe's folder"}},
      {{R"(data.tokens=["cut.bin"])"},
       3,
       {"token file " + folder + "/cut.bin has 3000 bytes, its header says 40000 tokens, which is 81024 bytes",
        "write it again"}},
      {{R"(data.tokens=["words.txt"])"},
       3,
       {"/words.txt is text, and no ids; make ids of it by `tools/tokenize_text.py --tokenizer DIR ",
        "or of its bytes by `shardc tokenize --bytes ", "/words.bin`"}},
      // A file for "bin", header and all.
      {{"data.format=u8"}, 3, {"/tokens.bin has llm.c's header, which says 40000 tokens", "set `data.format` to bin"}},
      {{"data.format=u16"}, 3, {"/tokens.bin has llm.c's header, which says 40000 tokens", "set `data.format` to bin"}},
      {{"model.hidden=64"},
       5,
       {"checkpoint " + newest, "checkpoint of another model: ", "hidden is 32 in the checkpoint, 64 in this run",
        "put it back, or start another run: --set start.run_id=tiny-2 --run-dir '" + (*training_ / "run-2'")}},
      {{"model.layers=3"}, 5, {"checkpoint " + newest, "layers is 2 in the checkpoint, 3 in this run"}},
      {{R"(data.tokens=["other.bin"])"},
       5,
       {"checkpoint " + newest,
        "checkpoint of a run over other data: what the token files hold (`data.tokens`, `data.targets`, `data.eval`, "
        "`data.format`) is 1 file, 40000 tokens,",
        "in the checkpoint, 1 file, 5000 tokens,", "put it back, or start another run from this checkpoint"}},
      {{"data.seed=3"}, 5, {"data.seed is 0 in the checkpoint, 3 in this run"}},
      {{"start.run_id=other"}, 5, {"step-00000020: it belongs to run tiny", "set `checkpoint.dir` to another folder"}},
      // Some terabytes.
      {{"model.hidden=65536", "model.ffn=262144", "model.heads=64"}, 4, {"error: does not fit: "}},
  };
  for (const RefusedCase& test : cases) {
    Sets sets = test.sets;
    sets.emplace_back("train.steps=30");
    const Outcome outcome = training_->Run("run", sets);
    EXPECT_EQ(outcome.status, test.status) << test.sets[0] << "\n" << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_EQ(outcome.out, "");
    for (const std::string& part : test.parts) {
      EXPECT_THAT(outcome.err, HasSubstr(part)) << test.sets[0];
    }
    EXPECT_TRUE(ContentsOf(*training_ / "run/checkpoints") == checkpoints) << test.sets[0];
    EXPECT_EQ(ReadText(*training_ / "run/metrics.jsonl"), metrics) << test.sets[0];
    EXPECT_TRUE(ReadText(*training_ / "run/attempts/0001/plan.shardc") == plan) << test.sets[0];
  }
  const Outcome good = training_->Run();
  EXPECT_EQ(good.status, 0) << good.err;
}

TEST_F(BadInput, AnotherRunHasNameThatIsFree) {
  std::filesystem::create_directory(*training_ / "run-2");
  const Outcome outcome = training_->Run("run", {"model.hidden=64", "train.steps=30"});
  std::filesystem::remove(*training_ / "run-2");
  EXPECT_EQ(outcome.status, 5);
  EXPECT_THAT(outcome.err, HasSubstr("--set start.run_id=tiny-3 --run-dir '" + (*training_ / "run-3'")));
}

TEST_F(BadInput, TokenOutOfRangeIsNamedWithItsPlace) {
  const Training training({"train.steps=20", "data.order=sequential", "checkpoint.every=1", "data.scan=0"});
  std::vector<uint16_t> ids = EasyTokens(40'000);
  // Met in the third step: 12 sequences of 32 a step.
  constexpr int64_t Bad = 2 * 12 * 32 + 40;
  ids[Bad] = 256;
  WriteBin(training / "tokens.bin", ids);
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format(
                               "step 2 section data op 0 load_tokens: token file {}: id 256 at byte {} (token {} of "
                               "the file), and `model.vocab` is 256",
                               training / "tokens.bin", 1024 + 2 * Bad, Bad)));
  EXPECT_THAT(outcome.err, HasSubstr("the file has another format than `data.format` = bin"));
  EXPECT_THAT(outcome.err, HasSubstr("from recipe line 37, data.tokens"));
  EXPECT_THAT(CheckpointsOf(training / "run"), ElementsAre("step-00000001", "step-00000002"));
}

// Of a head's targets the head's key is named, and its file; the tokens are sound.
TEST_F(BadInput, ATargetOutOfRangeIsLaidToItsHead) {
  const Training training(
      {"train.steps=4", "data.order=sequential", "train.eval_every=0", "data.eval_tokens=0", "data.scan=0"});
  WriteText(training / "tiny.toml",
            std::string(TinyRecipe()) +
                "\n[[init.rule]]\nmatch = \"heads.*\"\nvalue = 0\n\n[[loss.head]]\nname = \"image\"\nvocab = 10\n"
                "targets = [\"image.bin\"]\n");
  const std::string recipe = ReadText(training / "tiny.toml");
  const auto line =
      1 + std::count(recipe.begin(), recipe.begin() + static_cast<int64_t>(recipe.find("targets =")), '\n');
  std::vector<uint16_t> ids(EasyTokens(40'000).size(), 3);
  ids[500] = 45;
  WriteBin(training / "image.bin", ids);
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr(fmt::format("load_targets: target file {}: id 45 at byte {} (token 500 of the file), "
                                    "and the vocabulary of head image is 10; the file has another format "
                                    "than `data.format` = bin, or the vocabulary of head image is too small; "
                                    "from recipe line {}, loss.head.targets",
                                    training / "image.bin", 1024 + 2 * 500, line)));
}

TEST_F(BadInput, TokenFileCutShortDuringTheRun) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=5", "data.order=sequential"});
  const std::string tokens = ReadText(training / "tokens.bin");
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 6; })) << process.err();
  std::filesystem::resize_file(training / "tokens.bin", 2000);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("token file {} ends at byte ", training / "tokens.bin")));
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("; it had {} bytes when the run began", tokens.size())));
  EXPECT_THAT(CheckpointsOf(training / "run"), Not(IsEmpty()));
}

TEST_F(BadInput, Plans) {
  const std::string plan = ReadText(*training_ / "run/attempts/0001/plan.shardc");
  const auto moved = [&](const std::vector<std::string>& parts, int64_t by) {
    const std::string line = LineWith(plan, parts);
    const size_t number = line.rfind("offset=") + 7;
    return Edited(plan, {{line, line.substr(0, number) + std::to_string(std::stoll(line.substr(number)) + by)}});
  };
  struct Case {
    std::string text;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases{
      {moved({"buffer ", ".swiglu transient "}, 1), {"no multiple of 256 [buffer-alignment]", "layers.0.swiglu"}},
      {moved({"buffer $head.exp_avg_sq persistent "}, -256), {"overlap in the persistent arena [buffer-overlap]"}},
      {moved({"buffer $head.exp_avg_sq persistent "}, int64_t{1} << 30),
       {"the persistent arena has", "[outside-arena]"}},
      {Edited(plan, {{"mesh=dp:2", "mesh=dp:3"}}),
       {"does not verify", "no multiple of 3 ranks", "[sub-vector-length]"}},
      {Edited(plan, {{"mesh=dp:2", "mesh=dp:1"}}), {"does not verify"}},
      {Edited(plan, {{"plan version=2 ", "plan version=1 "}}),
       {"1:1: the plan has format version 1, this program reads version 2"}},
      // Within a word, as of a file that was cut short.
      {plan.substr(0, plan.find(" release ", plan.size() / 2) + 4), {".plan:", ": `rel` is not an op"}},
      {Edited(plan, {{"section step {", "section step {\n  compute frobnicate value=x"}}), {"frobnicate"}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    const std::string path = *training_ / fmt::format("broken{}.plan", i);
    WriteText(path, cases[i].text);
    const Outcome outcome = RunProcess({SHARDC_BINARY_DIR "/shardc", "run", path, "--run-dir", *training_ / "broken"});
    EXPECT_EQ(outcome.status, 3) << i << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, StartsWith("error: " + path));
    EXPECT_THAT(outcome.err, EndsWith("\nmake the plan again from its recipe: shardc plan RECIPE -o FILE\n")) << i;
    for (const std::string& part : cases[i].parts) {
      EXPECT_THAT(outcome.err, HasSubstr(part)) << i;
    }
    EXPECT_FALSE(std::filesystem::exists(*training_ / "broken/metrics.jsonl")) << i;
  }
  const Outcome absent = RunProcess({SHARDC_BINARY_DIR "/shardc", "run", *training_ / "absent.plan"});
  EXPECT_EQ(absent.status, 2);
  EXPECT_THAT(absent.err, HasSubstr("absent.plan`: No such file or directory"));
}

TEST_F(BadInput, DamagedCheckpoints) {
  struct Case {
    const char* name;
    std::function<void(const std::string& newest)> damage;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases{
      {"byte",
       [](const std::string& newest) {
         std::string text = ReadText(newest + "/rank-00001.safetensors");
         text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 4);
         WriteText(newest + "/rank-00001.safetensors", text);
       },
       {"/step-00000020/rank-00001.safetensors is damaged: the digest of bytes [0, ", "), which hold its header, ",
        "/step-00000020/rank-00001.blocks says ", "move this checkpoint away to continue from the one before"}},
      {"list",
       [](const std::string& newest) { std::filesystem::remove(newest + "/rank-00001.blocks"); },
       {"/step-00000020/rank-00001.blocks: No such file or directory",
        "move this checkpoint away to continue from the one before"}},
      {"missing",
       [](const std::string& newest) { std::filesystem::remove(newest + "/rank-00000.safetensors"); },
       {"/step-00000020/rank-00000.safetensors: No such file or directory",
        "move this checkpoint away to continue from the one before"}},
      {"short",
       [](const std::string& newest) { std::filesystem::resize_file(newest + "/rank-00000.safetensors", 1000); },
       {"/step-00000020/rank-00000.safetensors has 1000 bytes, its manifest says ",
        "move this checkpoint away to continue from the one before"}},
  };
  for (const Case& test : cases) {
    const std::string run_dir = CopyOfRun(test.name);
    const std::string newest = run_dir + "/checkpoints/step-00000020";
    test.damage(newest);
    const auto before = ContentsOf(run_dir + "/checkpoints");
    const Outcome outcome = training_->Run(test.name, {"train.steps=30"});
    EXPECT_EQ(outcome.status, 5) << test.name << "\n" << outcome.err;
    for (const std::string& part : test.parts) {
      EXPECT_THAT(outcome.err, HasSubstr(part)) << test.name;
    }
    EXPECT_TRUE(ContentsOf(run_dir + "/checkpoints") == before) << test.name;
    const Outcome evaluated = training_->Eval(newest);
    EXPECT_EQ(evaluated.status, 5) << test.name;
    EXPECT_EQ(evaluated.out, "");

    // The remedy that the message names.
    std::filesystem::rename(newest, run_dir + "/moved-away");
    const Outcome again = training_->Run(test.name);
    EXPECT_EQ(again.status, 0) << again.err;
    EXPECT_THAT(again.err, HasSubstr("/step-00000010 at step 10\n"));
    ExpectSameRun(run_dir, *training_ / "run");
  }
}

TEST_F(BadInput, DamagedManifests) {
  const auto cut = [](const std::string& checkpoint) {
    std::filesystem::resize_file(checkpoint + "/manifest.json", 200);
  };
  // The one before serves, and the log says so; what is damaged is kept aside.
  const std::string run_dir = CopyOfRun("manifest");
  cut(run_dir + "/checkpoints/step-00000020");
  const Outcome outcome = training_->Run("manifest");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("warning: step-00000020: " + run_dir + "/checkpoints/step-00000020/manifest.json: "));
  EXPECT_THAT(outcome.err, HasSubstr("/step-00000010 at step 10\n"));
  ExpectSameRun(run_dir, *training_ / "run");
  EXPECT_TRUE(std::filesystem::exists(run_dir + "/checkpoints/step-00000020.damaged-1/rank-00001.safetensors"));

  // None left: no start from scratch.
  const std::string all = CopyOfRun("manifests");
  cut(all + "/checkpoints/step-00000010");
  cut(all + "/checkpoints/step-00000020");
  const auto before = ContentsOf(all + "/checkpoints");
  const Outcome none = training_->Run("manifests");
  EXPECT_EQ(none.status, 5);
  EXPECT_THAT(none.err, HasSubstr("holds no whole checkpoint of run tiny, but: step-00000010: "));
  EXPECT_THAT(none.err, HasSubstr("to begin from scratch, move them away, or set `checkpoint.dir` to another folder"));
  EXPECT_TRUE(ContentsOf(all + "/checkpoints") == before);
}

TEST_F(BadInput, LeftoverOfASaveThatWasKilled) {
  const std::string run_dir = CopyOfRun("leftover");
  std::filesystem::rename(run_dir + "/checkpoints/step-00000020", run_dir + "/checkpoints/step-00000020.tmp-tiny");
  std::filesystem::remove(run_dir + "/checkpoints/step-00000020.tmp-tiny/manifest.json");
  const Outcome outcome = training_->Run("leftover");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("/step-00000010 at step 10\n"));
  EXPECT_THAT(UnfinishedSavesOf(run_dir), IsEmpty());
  ExpectSameRun(run_dir, *training_ / "run");
}

TEST_F(BadInput, CheckpointThatIsNone) {
  for (const std::string& name : {std::string("absent"), std::string("tokens.bin")}) {
    const Outcome outcome = training_->Eval(*training_ / name);
    EXPECT_EQ(outcome.status, 5) << name;
    EXPECT_THAT(outcome.err, StartsWith(fmt::format("error: {} is no checkpoint: ", *training_ / name))) << name;
    EXPECT_THAT(outcome.err, Not(HasSubstr("rank"))) << name;
    EXPECT_EQ(outcome.out, "");
  }
  const Outcome folder = training_->Eval(*training_ / "run");
  EXPECT_EQ(folder.status, 0) << folder.err;
  EXPECT_EQ(folder.out, training_->Eval(*training_ / "run/checkpoints").out);
}

TEST_F(BadInput, TwoRunsInOneRunDirectory) {
  Sets sets = SlowSteps();
  sets.insert(sets.end(), {"train.steps=40", "train.eval_every=0", "checkpoint.every=10"});
  const Training training(sets);
  Process first(training.RunCommand());
  ASSERT_TRUE(first.Await([&] { return ReadMetrics(training / "run").last_step() >= 2; })) << first.err();
  const Outcome second = training.Run();
  EXPECT_TRUE(first.is_running()) << "the first run is too short for this machine";
  EXPECT_EQ(second.status, 6);
  EXPECT_THAT(second.err, HasSubstr(fmt::format("run directory {} is in use by run tiny", training / "run")));
  EXPECT_THAT(second.err, HasSubstr(fmt::format("process {}", first.pid())));
  const Outcome outcome = first.Wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  ASSERT_EQ(training.Run("whole").status, 0);
  ExpectSameRun(training / "run", training / "whole");
}

// Of two that start at once one is refused, and the other trains by its own plan.
TEST_F(BadInput, TwoLaunchesAtOnce) {
  for (int i = 0; i < 6; ++i) {
    const std::string run = fmt::format("race{}", i);
    Process three(training_->RunCommand(run, {"train.steps=3"}));
    Process five(training_->RunCommand(run, {"train.steps=5"}));
    const int status_of_three = three.Wait().status;
    const int status_of_five = five.Wait().status;
    EXPECT_THAT(status_of_three, AnyOf(0, 6));
    EXPECT_THAT(status_of_five, AnyOf(0, 6));
    EXPECT_EQ(ReadMetrics(*training_ / run).steps.size(), status_of_five == 0 ? 5U : 3U);
  }
}

TEST_F(BadInput, RunDirectoryThatCannotBeWritten) {
  const Outcome under_file = RunProcess(training_->Command("run", {"--run-dir", *training_ / "tokens.bin/run"}));
  EXPECT_EQ(under_file.status, 6);
  EXPECT_THAT(under_file.err, HasSubstr("cannot make the run directory " + *training_ / "tokens.bin/run"));

  // Permissions do not hold root back; the kernel's own file systems do.
  std::string read_only = "/sys/shardc-test";
  if (geteuid() != 0) {
    read_only = *training_ / "read-only";
    std::filesystem::create_directory(read_only);
    std::filesystem::permissions(read_only, std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  }
  const Outcome outcome = RunProcess(training_->Command("run", {"--run-dir", read_only}));
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(read_only));
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("Permission denied"), HasSubstr("Operation not permitted"),
                                 HasSubstr("Read-only file system"), HasSubstr("No such file or directory")));
}

TEST_F(BadInput, VariablesOfALauncherThatAreNotAllThere) {
  for (const std::vector<std::string>& variables :
       {std::vector<std::string>{"RANK=0", "WORLD_SIZE=2"},
        std::vector<std::string>{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
        std::vector<std::string>{"PMI_RANK=0", "PMI_SIZE=8"}}) {
    const Outcome outcome = RunProcess(training_->RunCommand("launched"), {.environment = variables});
    EXPECT_EQ(outcome.status, 6) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(variables.front()));
    EXPECT_THAT(outcome.err, HasSubstr("are not: set them, or unset"));
    EXPECT_FALSE(std::filesystem::exists(*training_ / "launched/metrics.jsonl"));
  }
  // One process of one is what this program expects anyway.
  const Outcome single = RunProcess(training_->RunCommand("run"), {.environment = {"RANK=0", "WORLD_SIZE=1"}});
  EXPECT_EQ(single.status, 0) << single.err;
}

}  // namespace
}  // namespace shardc
