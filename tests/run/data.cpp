// What a launch does with its token files before it trains, runs of plans from other folders, runs on tokens that are
// made, and runs that evaluate on files of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/edited.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

auto Scanned(const Training& training) -> std::vector<std::string> {
  return nlohmann::json::parse(ReadText(training / "run/scanned.json"))["scanned"].get<std::vector<std::string>>();
}

/// Near the end, where the few steps of the test never come.
auto WriteBadTokens(const Training& training) -> void {
  std::vector<uint16_t> ids = EasyTokens(40'000);
  ids[35'000] = 300;
  WriteBin(training / "tokens.bin", ids);
}

TEST(LaunchData, ABadIdIsFoundBeforeTheFirstStep) {
  const Training training({"train.steps=2", "data.order=sequential"});
  WriteBadTokens(training);
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr(fmt::format("token file {}: id 300 at byte {} (token 35000 of the file), and "
                                                 "`model.vocab` is 256",
                                                 training / "tokens.bin", 1024 + 70'000)));
  EXPECT_THAT(outcome.err, testing::ContainsRegex("from recipe line [0-9]+, data.tokens \\[token-id-invalid\\]\n"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("step 1")));
  EXPECT_FALSE(std::filesystem::exists(training / "run/scanned.json"));
}

TEST(LaunchData, ABadIndexIsToldWithTheRecipesLine) {
  const Training training({"train.steps=2", "data.format=megatron"});
  const Outcome written = RunProcess({"/usr/bin/env", "python3", SHARDC_SOURCE_DIR "/tests/data/write_megatron.py",
                                      training / "tokens", "uint16", "1,2,3", "4,5"});
  ASSERT_EQ(written.status, 0) << written.err;
  // The second document begins at a sequence that there is not.
  std::string index = ReadText(training / "tokens.idx");
  index[66] = 9;
  WriteText(training / "tokens.idx", index);
  const Outcome outcome = training.Run("run", {"data.eval_tokens=0", "model.seq=4"});
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex("entry 1 of the table of documents is sequence 9.*; from recipe line [0-9]+, "
                                     "data.tokens \\[token-file-invalid\\]\n"));
}

TEST(LaunchData, ScanIsOnRecord) {
  const Training training({"train.steps=2", "data.order=sequential"});
  ASSERT_EQ(training.Run().status, 0);
  const auto once = Scanned(training);
  ASSERT_EQ(once.size(), 1U);
  EXPECT_THAT(once[0], testing::ContainsRegex("^[0-9a-f]{32}; bin, below 256 \\| [0-9a-f]{32}$"));
  const auto looked_at = std::filesystem::last_write_time(training / "run/scanned.json");
  ASSERT_EQ(training.Run("run", {"train.steps=4"}).status, 0);
  EXPECT_EQ(Scanned(training), once);
  EXPECT_EQ(std::filesystem::last_write_time(training / "run/scanned.json"), looked_at);
  // The same files and a smaller vocabulary is another question.
  const Outcome other = training.Run("run", {"model.vocab=40", "train.steps=4"});
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.err, HasSubstr("and `model.vocab` is 40"));
}

/// A run of two steps over a file of 801,024 bytes.
class LargeTraining : public Training {
 public:
  LargeTraining() : Training({"train.steps=2", "data.order=sequential"}) {
    WriteBin(*this / "tokens.bin", EasyTokens(400'000));
  }
};

/// Overwrites a token that fingerprints do not sample, and sets the time of the last write back.
auto ChangeToken(const Training& training, char letter) -> void {
  constexpr std::streamoff Byte = 420'000;
  const std::string path = training / "tokens.bin";
  const auto written_at = std::filesystem::last_write_time(path);
  // The clock of files moves every few milliseconds.
  Sleep(20);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(Byte).put(letter);
  std::filesystem::last_write_time(path, written_at);
}

TEST(LaunchData, RestartComparesAllBytes) {
  const LargeTraining training;
  ASSERT_EQ(training.Run().status, 0);
  const char letter = ReadText(training / "tokens.bin")[420'000];
  ChangeToken(training, '#');
  const Outcome refused = training.Run("run", {"train.steps=4"});
  EXPECT_EQ(refused.status, 5) << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("checkpoint of a run over other data: the digest of all bytes of the files "
                                           "that `data.tokens` names is "),
                                 Not(HasSubstr("data.format"))));
  // Each change was scanned.
  ChangeToken(training, letter);
  EXPECT_EQ(training.Run("run", {"train.steps=4"}).status, 0);
  EXPECT_EQ(Scanned(training).size(), 3U);
}

TEST(LaunchData, OldCheckpointsContinue) {
  const LargeTraining training;
  ASSERT_EQ(training.Run("run", {"data.scan=0"}).status, 0);
  const std::string first = training / "run/checkpoints/step-00000002/manifest.json";
  // Older programs write such manifests.
  EXPECT_THAT(ReadText(first), Not(HasSubstr("digests")));
  ChangeToken(training, '#');
  const Outcome outcome = training.Run("run", {"train.steps=4"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the checkpoint holds no digest of all bytes of the token files: a sample of them "
                                     "was compared\n"));
  EXPECT_THAT(ReadText(training / "run/checkpoints/step-00000004/manifest.json"), HasSubstr("\"digests\""));
  const Outcome next = training.Run("run", {"train.steps=6"});
  EXPECT_EQ(next.status, 0) << next.err;
  EXPECT_THAT(next.err, Not(HasSubstr("no digest")));
}

TEST(LaunchData, FilesAboveTheLimitAreNotLookedAt) {
  const Training training({"train.steps=2", "data.order=sequential"});
  WriteBadTokens(training);
  const Outcome never = training.Run("never", {"data.scan=0"});
  EXPECT_EQ(never.status, 0) << never.err;
  EXPECT_THAT(never.err, HasSubstr("the token files are not read before the run (`data.scan` is 0): other hosts and"));
  const Outcome above = training.Run("above", {"data.scan=\"1 KiB\""});
  EXPECT_EQ(above.status, 0) << above.err;
  EXPECT_THAT(above.err, HasSubstr("the files have 81024 bytes, more than the 1024 of `data.scan`; other hosts and "
                                   "restarts compare their sizes, both ends and 16 blocks of 4 KiB each, and nothing "
                                   "else"));
  EXPECT_FALSE(std::filesystem::exists(training / "above/scanned.json"));
  EXPECT_EQ(training.Run("below", {"data.scan=\"80 KiB\""}).status, 3);
}

TEST(LaunchData, ADamagedRecordIsMadeAgain) {
  const Training training({"train.steps=2"});
  std::filesystem::create_directory(training / "run");
  WriteText(training / "run/scanned.json", "{\"scanned\": [1, ");
  ASSERT_EQ(training.Run().status, 0);
  EXPECT_EQ(Scanned(training).size(), 1U);
}

TEST(LaunchData, APlanRunsFromAnotherFolder) {
  const Training training({"train.steps=2"});
  const TemporaryFolder elsewhere;
  std::vector<std::string> command = training.Command("plan");
  ASSERT_EQ(command.size() > 2, true);
  command[2] = "tiny.toml";
  command.insert(command.end(), {"-o", "tiny.plan"});
  ASSERT_EQ(RunProcess(command, {.folder = training.path()}).status, 0);
  const std::vector<std::string> run{SHARDC_BINARY_DIR "/shardc", "run", training / "tiny.plan"};
  const Outcome outcome = RunProcess(run, {.folder = elsewhere.path()});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
  EXPECT_TRUE(std::filesystem::exists(training / "runs/tiny/metrics.jsonl"));
  // A plan that was written by hand has paths of the current folder, and says which one that is.
  const std::string path = "\"" + std::filesystem::canonical(training / "tokens.bin").string() + "\"";
  WriteText(training / "tiny.plan", Edited(ReadText(training / "tiny.plan"), {{path, "\"tokens.bin\""}}));
  const Outcome lost = RunProcess(run, {.folder = elsewhere.path()});
  EXPECT_EQ(lost.status, 3);
  EXPECT_THAT(lost.err, HasSubstr("token file tokens.bin: No such file or directory; looked for at " +
                                  std::filesystem::canonical(elsewhere.path()).string() + "/tokens.bin"));
}

TEST(Synthetic, RunsResumeExactlyAndReadTheSameSamplesOnOtherMeshes) {
  for (const char* kind : {"uniform", "zipf", "copy"}) {
    SCOPED_TRACE(kind);
    // The shorter run evaluates at its end: the whole one at the same step.
    const Training training({"train.steps=12", "checkpoint.every=6", "train.eval_every=6"});
    WriteText(training / "tiny.toml", Edited(ReadText(training / "tiny.toml"),
                                             {{"tokens = [\"tokens.bin\"]", fmt::format("synthetic = \"{}\"", kind)}}));
    std::filesystem::remove(training / "tokens.bin");
    const Outcome whole = training.Run("whole");
    ASSERT_EQ(whole.status, 0) << whole.err;
    EXPECT_THAT(ReadText(training / "whole/attempts/0001/plan.shardc"),
                testing::ContainsRegex(" load_tokens .*// recipe:[0-9]+ data.synthetic, build\n"));
    ASSERT_EQ(training.Run("run", {"train.steps=6"}).status, 0);
    ASSERT_EQ(training.Run("run").status, 0);
    ExpectSameRun(training / "run", training / "whole");
    EXPECT_FALSE(std::filesystem::exists(training / "run/scanned.json"));
    // Another mesh adds in another order, and reads the same samples.
    ASSERT_EQ(training.Run("other", {"mesh.dp=1", "batch.micro=3"}).status, 0);
    const Metrics one = ReadMetrics(training / "other");
    const Metrics two = ReadMetrics(training / "whole");
    ASSERT_EQ(one.steps.size(), two.steps.size());
    for (size_t i = 0; i < one.steps.size(); ++i) {
      EXPECT_NEAR(one.steps[i].loss, two.steps[i].loss, 1e-4 * two.steps[i].loss) << i;
    }
    // Another seed has other samples, which a checkpoint does not continue with.
    EXPECT_EQ(training.Run("run", {"data.seed=5", "train.steps=20"}).status, 5);
  }
}

/// The tiny training, whose last 1,000 tokens, which it holds out, are in two files too.
class EvalFiles : public testing::Test {
 protected:
  EvalFiles() {
    std::filesystem::create_directory(training_ / "shards");
    WriteRange("train.bin", 0, 39'000);
    WriteRange("shards/a.bin", 39'000, 39'400);
    WriteRange("shards/b.bin", 39'400, 40'000);
  }
  auto WriteRange(const std::string& name, int64_t begin, int64_t end) -> void {
    WriteBin(training_ / name, {ids_.begin() + begin, ids_.begin() + end});
  }

  std::vector<uint16_t> ids_ = EasyTokens(40'000);
  Training training_;
  Sets sets_ = {R"(data.tokens=["train.bin"])", "data.eval_tokens=0", R"(data.eval=["shards/*.bin"])"};
};

TEST_F(EvalFiles, GiveHeldOutTokensLosses) {
  const Outcome held_out = training_.Run("held_out");
  ASSERT_EQ(held_out.status, 0) << held_out.err;
  const Outcome own = training_.Run("run", sets_);
  ASSERT_EQ(own.status, 0) << own.err;
  const auto expected = ReadMetrics(training_ / "held_out").evals;
  ASSERT_EQ(expected.size(), 2U);
  EXPECT_EQ(ReadMetrics(training_ / "run").evals, expected);
}

TEST_F(EvalFiles, OtherFilesAreAnotherRun) {
  sets_.emplace_back("train.steps=20");
  ASSERT_EQ(training_.Run("run", sets_).status, 0);
  WriteRange("shards/b.bin", 1'000, 1'600);
  sets_.back() = "train.steps=21";
  const Outcome outcome = training_.Run("run", sets_);
  EXPECT_EQ(outcome.status, 5) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("`data.eval`"));
}

TEST_F(EvalFiles, BadIdNamesTheRecipesLine) {
  ids_[39'500] = 300;
  WriteRange("shards/b.bin", 39'400, 40'000);
  const Outcome outcome = training_.Run("run", sets_);
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.err,
              testing::ContainsRegex(
                  "evaluation file .*shards/b.bin: id 300 at byte 1224 .*data.eval=.*\\[token-id-invalid\\]"));
}

TEST_F(EvalFiles, ServeAMixture) {
  sets_.erase(sets_.begin());
  sets_.emplace_back("train.steps=20");
  WriteText(training_ / "tiny.toml",
            Edited(ReadText(training_ / "tiny.toml"), {{"tokens = [\"tokens.bin\"]\neval_tokens = 1000\n",
                                                        "[[data.source]]\ntokens = [\"train*.bin\"]\nweight = 1\n"
                                                        "[[data.source]]\ntokens = [\"tokens.bin\"]\nweight = 2\n"}}));
  const Outcome first = training_.Run("run", sets_);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(ReadMetrics(training_ / "run").evals.size(), 1U);
  sets_.back() = "train.steps=21";
  WriteRange("shards/b.bin", 1'000, 1'600);
  const Outcome other = training_.Run("run", sets_);
  EXPECT_EQ(other.status, 5) << other.err;
  EXPECT_THAT(other.err, HasSubstr("what `data.eval` gives is"));
}

}  // namespace
}  // namespace shardc
