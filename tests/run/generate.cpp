// What a checkpoint makes of given ids: logits against the loss of an evaluation, and samples against the logits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/published_files.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr int64_t Vocab = 256;
constexpr int64_t Seq = 32;
constexpr int64_t HeldOut = 1000;
/// Relative: ranks along tp add up products in another order.
constexpr float AcrossMeshes = 1e-4F;

/// A file that `shardc logits` wrote, in f32.
struct LogitsFile {
  std::vector<float> logits;
  std::vector<int32_t> tokens;

  auto Row(size_t id) const -> const float* { return logits.data() + id * Vocab; }
};

auto ReadLogits(const std::string& path) -> LogitsFile {
  const PublishedTensors tensors = ReadSafetensors(path);
  LogitsFile file;
  const auto take = [&](const char* name, const char* dtype, auto& into) {
    const PublishedTensor& tensor = tensors.at(name);
    EXPECT_EQ(tensor.dtype, dtype);
    into.resize(tensor.bytes.size() / sizeof(into[0]));
    std::memcpy(into.data(), tensor.bytes.data(), tensor.bytes.size());
  };
  take("logits", "F32", file.logits);
  take("tokens", "I32", file.tokens);
  EXPECT_EQ(tensors.at("logits").shape, (std::vector<int64_t>{std::ssize(file.tokens), Vocab}));
  return file;
}

class Generate : public testing::Test {
 protected:
  static auto SetUpTestSuite() -> void {
    training_ = new Training({"train.steps=20", "train.eval_every=0"});
    ASSERT_EQ(training_->Run().status, 0);
    WriteBin(*training_ / "ids.bin", Ids());
  }
  static auto TearDownTestSuite() -> void {
    delete training_;
    training_ = nullptr;
  }

  /// Returns the held-out ids of the run.
  static auto Ids() -> std::vector<uint16_t> {
    const std::vector<uint16_t> all = EasyTokens(40'000);
    return {all.end() - HeldOut, all.end()};
  }
  static auto Ask(const std::string& command, std::vector<std::string> arguments, const Sets& sets = {}) -> Outcome {
    arguments.insert(arguments.end(), {"--checkpoint", *training_ / "run"});
    for (const std::string& set : sets) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return RunProcess(training_->Command(command, arguments));
  }
  static auto LogitsOf(const std::string& ids, const Sets& sets = {}) -> LogitsFile {
    const Outcome outcome = Ask("logits", {"--tokens", ids, "-o", *training_ / "logits.safetensors"}, sets);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return ReadLogits(*training_ / "logits.safetensors");
  }
  static auto SampleOf(const std::vector<std::string>& arguments, const Sets& sets = {}) -> std::string {
    const Outcome outcome = Ask("sample", arguments, sets);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return outcome.out;
  }

  static inline Training* training_ = nullptr;
};

TEST_F(Generate, LogitsGiveTheEvaluationsLoss) {
  const LogitsFile file = LogitsOf(*training_ / "ids.bin");
  ASSERT_EQ(file.tokens.size(), HeldOut);
  double sum = 0;
  int64_t count = 0;
  // Of each sample the last position has its target in the next one.
  for (size_t i = 0; i + 1 < HeldOut && i < (HeldOut - 1) / Seq * Seq; ++i) {
    double exponentials = 0;
    for (int64_t v = 0; v < Vocab; ++v) {
      exponentials += std::exp(static_cast<double>(file.Row(i)[v]));
    }
    sum += std::log(exponentials) - file.Row(i)[file.tokens[i + 1]];
    ++count;
  }
  const Outcome eval = training_->Eval(*training_ / "run");
  ASSERT_EQ(eval.status, 0) << eval.err;
  const double loss = nlohmann::json::parse(eval.out).at("eval_loss").get<double>();
  EXPECT_NEAR(sum / static_cast<double>(count), loss, 1e-5 * loss);
  EXPECT_LT(loss, 5);
}

TEST_F(Generate, MeshesAndChunksAgreeOnLogits) {
  const LogitsFile expected = LogitsOf(*training_ / "ids.bin", {"mesh.dp=1"});
  for (const Sets& sets : {Sets{}, Sets{"mesh.dp=1", "mesh.tp=2"}, Sets{"mesh.dp=2", "mesh.tp=2"},
                           Sets{"mesh.dp=3", "loss.chunks=4"}, Sets{"mesh.replicate=2", "mesh.dp=1"}}) {
    SCOPED_TRACE(testing::PrintToString(sets));
    const LogitsFile file = LogitsOf(*training_ / "ids.bin", sets);
    EXPECT_EQ(file.tokens, expected.tokens);
    ASSERT_EQ(file.logits.size(), expected.logits.size());
    float farthest = 0;
    for (size_t i = 0; i < file.logits.size(); ++i) {
      farthest = std::max(farthest, std::abs(file.logits[i] - expected.logits[i]));
    }
    EXPECT_LT(farthest, AcrossMeshes);
  }
}

TEST_F(Generate, ColdSamplesAreTheLikeliestIds) {
  std::vector<uint16_t> ids{'m', 'e', 's', 'h', ' '};
  const std::string text = SampleOf({"--prompt", "mesh ", "--tokens-out", "6", "--temperature", "0"});
  ASSERT_EQ(text.size(), 5 + 6 + 1);
  EXPECT_EQ(text.substr(0, 5), "mesh ");
  EXPECT_EQ(text.back(), '\n');
  for (size_t i = 5; i < 11; ++i) {
    WriteBin(*training_ / "prompt.bin", ids);
    const LogitsFile file = LogitsOf(*training_ / "prompt.bin");
    const float* row = file.Row(ids.size() - 1);
    const auto likeliest = static_cast<uint16_t>(std::max_element(row, row + Vocab) - row);
    EXPECT_EQ(static_cast<unsigned char>(text[i]), likeliest);
    ids.push_back(likeliest);
  }
  const std::string by_ids =
      SampleOf({"--prompt-ids", "109, 101 115,104,32", "--tokens-out", "6", "--temperature", "0"}, {"mesh.tp=2"});
  std::string expected;
  for (size_t i = 5; i < 11; ++i) {
    expected += fmt::format("{}\n", static_cast<unsigned char>(text[i]));
  }
  EXPECT_EQ(by_ids, expected);
}

TEST_F(Generate, SeedsDecideSamplesOnAnyMesh) {
  // Ids that lie too far back for the model drop out.
  const std::vector<std::string> many{"--prompt-ids", "115", "--tokens-out", "100", "--sample-seed"};
  const auto with_seed = [&](const char* seed, const Sets& sets) {
    std::vector<std::string> arguments = many;
    arguments.emplace_back(seed);
    return SampleOf(arguments, sets);
  };
  const std::string sampled = with_seed("5", {"mesh.dp=1"});
  EXPECT_EQ(std::ranges::count(sampled, '\n'), 100);
  EXPECT_EQ(with_seed("5", {"mesh.tp=2"}), sampled);
  EXPECT_NE(with_seed("6", {"mesh.dp=1"}), sampled);
}

// What is drawn is as likely as its logits say: on average, -log p is the entropy.
TEST_F(Generate, DrawsFollowTheLogits) {
  double surprise = 0;
  double variance = 0;
  for (const char* seed : {"1", "2", "3"}) {
    std::istringstream sampled(
        SampleOf({"--prompt-ids", "115", "--tokens-out", "31", "--sample-seed", seed}, {"mesh.dp=1"}));
    std::vector<uint16_t> ids{115};
    for (uint16_t id = 0; sampled >> id;) {
      ids.push_back(id);
    }
    ASSERT_EQ(ids.size(), Seq);
    WriteBin(*training_ / "sampled.bin", ids);
    const LogitsFile file = LogitsOf(*training_ / "sampled.bin", {"mesh.dp=1"});
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      double exponentials = 0;
      for (int64_t v = 0; v < Vocab; ++v) {
        exponentials += std::exp(static_cast<double>(file.Row(i)[v]));
      }
      const double whole = std::log(exponentials);
      double entropy = 0;
      double of_squares = 0;
      for (int64_t v = 0; v < Vocab; ++v) {
        const double log_p = static_cast<double>(file.Row(i)[v]) - whole;
        entropy -= std::exp(log_p) * log_p;
        of_squares += std::exp(log_p) * log_p * log_p;
      }
      surprise += whole - static_cast<double>(file.Row(i)[ids[i + 1]]) - entropy;
      variance += of_squares - entropy * entropy;
    }
  }
  EXPECT_GT(variance, 1);
  EXPECT_LT(std::abs(surprise), 4 * std::sqrt(variance));
}

// Recipes whose heads have targets of their own are asked about ids alone.
TEST_F(Generate, OwnHeadAnswersWithoutTargets) {
  const Training headed({"train.steps=2", "train.eval_every=0", "data.targets=[\"tokens.bin\"]",
                         R"--(init.rule=[{match = "*", value = "normal(0, 0.1)"}])--",
                         R"(loss.head=[{name = "next", vocab = 256, targets = ["tokens.bin"], weight = 0.5}])"});
  ASSERT_EQ(headed.Run().status, 0);
  const Training bare({"train.steps=1", "train.eval_every=0", "optimizer.lr=0", "init.rule=[]", "start.run_id=second",
                       fmt::format("start.first={{ seed = \"{}\", unused = [\"heads.*\"] }}",
                                   headed / "run/checkpoints/step-00000002")});
  ASSERT_EQ(bare.Run().status, 0);
  const auto ask = [&](const Training& training, const std::string& command, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--checkpoint", training / "run"});
    const Outcome outcome = RunProcess(training.Command(command, arguments));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const bool is_told = outcome.err.find("the model's own head answers; the heads next do not\n") != std::string::npos;
    EXPECT_EQ(is_told, &training == &headed);
    return outcome.out;
  };
  const std::vector<std::string> prompt{"--prompt-ids", "109,101", "--tokens-out", "5"};
  EXPECT_EQ(ask(headed, "sample", prompt), ask(bare, "sample", prompt));
  for (const Training* const training : {&headed, &bare}) {
    ask(*training, "logits", {"--tokens", *training_ / "ids.bin", "-o", *training / "logits.safetensors"});
  }
  EXPECT_EQ(ReadLogits(headed / "logits.safetensors").logits, ReadLogits(bare / "logits.safetensors").logits);
}

// In the middle of an answer, which says how far it came.
TEST_F(Generate, StopsEndAnswers) {
  WriteBin(*training_ / "many.bin", EasyTokens(3'200'000));
  const std::string logits = *training_ / "stopped.safetensors";
  const std::vector<std::vector<std::string>> commands{
      training_->Command("sample",
                         {"--checkpoint", *training_ / "run", "--prompt-ids", "1", "--tokens-out", "1000000"}),
      training_->Command("eval", {"--checkpoint", *training_ / "run", "--set", "data.eval_tokens=0", "--set",
                                  "data.eval=['many.bin']"}),
      training_->Command("logits",
                         {"--checkpoint", *training_ / "run", "--tokens", *training_ / "many.bin", "-o", logits}),
  };
  for (const auto& command : commands) {
    for (const int signal : {SIGTERM, SIGINT}) {
      SCOPED_TRACE(command[1]);
      Process process(command);
      ASSERT_EQ(process.AwaitChildren(2).size(), 2U) << process.err();
      process.Kill(signal);
      const Outcome outcome = process.Wait(Seconds{10});
      EXPECT_EQ(outcome.status, 75) << outcome.err;
      EXPECT_THAT(outcome.err, testing::ContainsRegex("stopped as asked after [0-9,]+ of [0-9,]+ (ids|samples)\n"));
      EXPECT_THAT(outcome.err, testing::Not(HasSubstr("error")));
    }
  }
  EXPECT_FALSE(std::filesystem::exists(logits));
}

// The recipe as the run was launched, whatever the recipe says now.
TEST_F(Generate, RunDirectoryNamesItsRecipe) {
  const std::string run = *training_ / "run";
  const auto with_run = [&](const std::string& command, std::vector<std::string> arguments) {
    std::vector<std::string> whole = training_->Command(command, {});
    whole.resize(2);
    whole.push_back(run);
    whole.insert(whole.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProcess(whole);
    EXPECT_EQ(outcome.status, 0) << command << outcome.err;
    return outcome.out;
  };
  EXPECT_EQ(with_run("eval", {}), RunProcess(training_->Command("eval", {"--checkpoint", run})).out);
  EXPECT_EQ(with_run("sample", {"--prompt", "mesh ", "--tokens-out", "6"}),
            SampleOf({"--prompt", "mesh ", "--tokens-out", "6"}));
  with_run("logits", {"--tokens", *training_ / "ids.bin", "-o", *training_ / "of_run.safetensors"});
  EXPECT_EQ(ReadLogits(*training_ / "of_run.safetensors").logits, LogitsOf(*training_ / "ids.bin").logits);
}

TEST_F(Generate, RunDirectoryNamesNoRecipeThatWasRefused) {
  const Training training;
  ASSERT_EQ(training.Run().status, 0);
  const std::string loss = RunProcess(training.Command("eval", {"--checkpoint", training / "run"})).out;
  EXPECT_EQ(training.Run("run", {"model.seq=8"}).status, 5);
  std::vector<std::string> command = training.Command("eval", {});
  command.resize(2);
  command.push_back(training / "run");
  const Outcome outcome = RunProcess(command);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, loss);
}

TEST_F(Generate, BadQuestionsAreRefused) {
  struct Case {
    std::string command;
    std::vector<std::string> arguments;
    Sets sets;
    int status;
    std::string message;
  };
  const std::string prompt = *training_ / "ids.bin";
  WriteBin(*training_ / "none.bin", {});
  WriteBin(*training_ / "wide.bin", {1, 2, 300});
  const std::vector<Case> cases{
      {"sample", {}, {}, 2, "write either --prompt TEXT or --prompt-ids IDS"},
      {"sample", {"--prompt", "a", "--prompt-ids", "1"}, {}, 2, "write either --prompt TEXT or --prompt-ids IDS"},
      {"sample", {"--prompt-ids", "1,x"}, {}, 2, "--prompt-ids: `x` stands where a number"},
      {"sample", {"--prompt-ids", "256"}, {}, 2, "the prompt has id 256, and the model's vocabulary ends at 255"},
      {"sample", {"--prompt-ids", " "}, {}, 2, "the prompt is empty"},
      {"sample",
       {"--prompt-ids", "1,,2"},
       {},
       2,
       "--prompt-ids: a comma has no id beside it; write them as in 15,27,99"},
      {"sample", {"--prompt-ids", "1,2,"}, {}, 2, "--prompt-ids: a comma has no id beside it"},
      {"sample", {"--prompt", "a", "--tokens-out", "0"}, {}, 2, "--tokens-out: `0` stands where a number from 1"},
      {"sample", {"--prompt", "a", "--temperature", "-1"}, {}, 2, "--temperature: `-1` stands where a number"},
      {"sample", {"--prompt", "a", "--temperature", "nan"}, {}, 2, "--temperature: `nan` stands where a number"},
      {"sample", {"--prompt", "a"}, {"model.hidden=64"}, 5, "hidden"},
      {"sample",
       {"--prompt", "a"},
       {"model.vocab=257"},
       2,
       "this model's vocabulary has 257 ids; use tools/sample_text.py"},
      {"logits", {"--tokens", *training_ / "absent.bin", "-o", "x"}, {}, 3, "absent.bin"},
      {"logits", {"--tokens", *training_ / "none.bin", "-o", "x"}, {}, 2, "none.bin has 0 ids; it takes 1 to "},
      {"logits", {"--tokens", *training_ / "wide.bin", "-o", "x"}, {}, 3, "300"},
      {"logits", {"--tokens", prompt, "-o", *training_ / "no/such/folder"}, {}, 6, "no/such"},
      {"logits", {"--tokens", prompt, "-o", prompt}, {}, 2, "would replace what is read"},
      {"logits", {"--tokens", prompt, "-o", *training_ / "run/metrics.jsonl"}, {}, 2, "where a run keeps its files"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.command + " " + testing::PrintToString(c.arguments));
    const Outcome outcome = Ask(c.command, c.arguments, c.sets);
    EXPECT_EQ(outcome.status, c.status) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(c.message));
    EXPECT_EQ(outcome.out, "");
  }
}

}  // namespace
}  // namespace shardc
