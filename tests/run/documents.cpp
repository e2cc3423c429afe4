// Runs whose samples are documents: restarts go on with the same rows, ranks share them, steps tell their targets, and
// sources with and without targets of their own are trained together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/edited.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr uint16_t NoTarget = 65535;

/// Returns the targets of each step, by metrics.jsonl.
auto TargetsOf(const std::string& run_dir) -> std::vector<int64_t> {
  std::vector<int64_t> targets;
  std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    if (const auto json = nlohmann::json::parse(line); json.contains("loss")) {
      targets.push_back(json.at("targets").get<int64_t>());
    }
  }
  return targets;
}

class DocumentRuns : public testing::TestWithParam<const char*> {
 protected:
  DocumentRuns()
      : training_({"train.steps=8", "train.eval_every=4", "checkpoint.every=4", "data.documents=split",
                   "data.document_end=0", "data.eval=['held_out.bin']", "data.eval_tokens=0",
                   fmt::format("data.pack={}", GetParam())}) {
    WriteBin(training_ / "tokens.bin", DocumentTokens(6'000, 1));
    WriteBin(training_ / "held_out.bin", DocumentTokens(1'500, 2));
  }

  Training training_;
};

// A few epochs of the stream, so that rows of several epochs are read.
TEST_P(DocumentRuns, GoOnAfterARestartWithTheSameRows) {
  const Outcome whole = training_.Run("whole");
  ASSERT_EQ(whole.status, 0) << whole.err;
  std::vector<std::string> first = training_.RunCommand("parts");
  first.insert(first.end(), {"--stop-after", "3"});
  ASSERT_EQ(RunProcess(first).status, 75);
  const Outcome rest = training_.Run("parts");
  ASSERT_EQ(rest.status, 0) << rest.err;
  ExpectSameRun(training_ / "whole", training_ / "parts");
  EXPECT_EQ(TargetsOf(training_ / "whole"), TargetsOf(training_ / "parts"));
}

TEST_P(DocumentRuns, HaveTheSameTargetsOnEveryMesh) {
  ASSERT_EQ(training_.Run("one", {"mesh.dp=1", "batch.global=12"}).status, 0);
  ASSERT_EQ(training_.Run("three", {"mesh.dp=3", "batch.global=12"}).status, 0);
  const std::vector<int64_t> targets = TargetsOf(training_ / "one");
  ASSERT_EQ(targets.size(), 8U);
  EXPECT_EQ(targets, TargetsOf(training_ / "three"));
  // Not all of the 12 samples of 32 tokens, and more than half: documents have 15 tokens in the mean.
  for (const int64_t of_step : targets) {
    EXPECT_GT(of_step, 12 * 16);
    EXPECT_LT(of_step, 12 * 32);
  }
  const Metrics one = ReadMetrics(training_ / "one");
  const Metrics three = ReadMetrics(training_ / "three");
  ASSERT_EQ(one.evals.size(), 2U);
  for (size_t i = 0; i < one.evals.size(); ++i) {
    EXPECT_NEAR(one.evals[i].second, three.evals[i].second, 1e-5 * one.evals[i].second);
  }
}

TEST_P(DocumentRuns, EvaluateOnNoTargetAtAll) {
  ASSERT_EQ(training_.Run("run").status, 0);
  WriteBin(training_ / "held_out.bin", std::vector<uint16_t>(200, DocumentEnd));
  const Outcome eval = training_.Eval(training_ / "run/checkpoints/" + CheckpointNameOf(8));
  EXPECT_EQ(eval.status, 3) << eval.err;
  EXPECT_EQ(eval.out, "");
  EXPECT_THAT(eval.err, HasSubstr("there is nothing to evaluate; name other files: --set 'data.eval=[\"FILE\"]'"));
  const Outcome refused = training_.Run("other", {"start.run_id=other"});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("of `data.eval` has a target, so no evaluation would have a loss"));
}

INSTANTIATE_TEST_SUITE_P(Packing, DocumentRuns, testing::Values("stream", "best-fit"),
                         [](const auto& test) { return std::string(test.param) == "stream" ? "Stream" : "BestFit"; });

// Answers, of which only the ends are targets, beside plain text.
TEST(DocumentSources, HaveTargetsOfTheirOwn) {
  const Training training({"train.steps=4", "checkpoint.every=0"});
  std::vector<uint16_t> answers = DocumentTokens(6'000, 3);
  WriteBin(training / "answers.bin", answers);
  std::ranges::transform(answers, answers.begin(), [](uint16_t id) { return id == DocumentEnd ? id : NoTarget; });
  WriteBin(training / "answers.targets.bin", answers);
  WriteBin(training / "plain.bin", DocumentTokens(6'000, 4));
  const auto run = [&](const std::string& name, double of_answers, double of_plain) {
    WriteText(training / "tiny.toml",
              Edited(std::string(TinyRecipe()),
                     {{"[data]\ntokens = [\"tokens.bin\"]\neval_tokens = 1000\n", fmt::format(R"toml(
[data]
documents = "split"
document_end = 0
pack = "best-fit"
[[data.source]]
name = "answers"
tokens = ["answers.bin"]
targets = ["answers.targets.bin"]
weight = {}
[[data.source]]
name = "plain"
tokens = ["plain.bin"]
weight = {}
)toml",
                                                                                              of_answers, of_plain)}}));
    const Outcome outcome = training.Run(name);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return TargetsOf(training / name);
  };
  // A document of answers has one target, its end; there are about two documents in a sample.
  for (const int64_t targets : run("answers", 1, 0.0001)) {
    EXPECT_LT(targets, 12 * 32 / 4);
    EXPECT_GT(targets, 12);
  }
  for (const int64_t targets : run("mixed", 0.5, 0.5)) {
    EXPECT_GT(targets, 12 * 32 / 3);
  }
}

}  // namespace
}  // namespace shardc
