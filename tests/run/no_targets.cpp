// Steps and evaluations in which no position has a target: they are reported, and have no loss.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t TokensPerStep = 12 * 32;
constexpr int64_t NumTokens = 40'000;
constexpr int64_t HeldOut = 1000;
constexpr const char* Warning = "no position of the batch has a target";

/// Returns the numbers of one metric, NaN for null.
auto NumbersOf(const std::string& run_dir, const std::string& name) -> std::vector<double> {
  std::vector<double> numbers;
  std::istringstream text(ReadText(run_dir + "/metrics.jsonl"));
  for (std::string line; std::getline(text, line);) {
    if (const auto json = nlohmann::json::parse(line); json.contains(name)) {
      numbers.push_back(json[name].is_null() ? std::nan("") : json[name].get<double>());
    }
  }
  return numbers;
}

auto TimesIn(const std::string& text, const std::string& part) -> int {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

class NoTargets : public testing::Test {
 protected:
  NoTargets()
      : training_({"train.steps=6", "train.eval_every=3", "train.log_every=1", "data.order=sequential",
                   "data.targets=['targets.bin']", "checkpoint.every=0"}) {}

  /// Writes the tokens as targets, but for the places [begin, end).
  auto WriteTargets(int64_t begin, int64_t end) -> void {
    std::vector<uint16_t> targets = EasyTokens(NumTokens);
    std::fill(targets.begin() + begin, targets.begin() + end, uint16_t{65535});
    WriteBin(training_ / "targets.bin", targets);
  }
  /// Returns settings that add a term to the loss.
  static auto SecondHead() -> Sets {
    return {"loss.head=[{name = \"next\", vocab = 256, targets = [\"targets.bin\"], weight = 0.5}]",
            "init.rule=[{match = \"*\", value = \"normal(0, 0.02)\"}]"};
  }

  Training training_;
};

TEST_F(NoTargets, AreReportedOnce) {
  // These are the targets of the steps 2 and 3, one token later than their tokens.
  WriteTargets(TokensPerStep + 1, 3 * TokensPerStep + 1);
  for (const bool has_two_terms : {false, true}) {
    const std::string run = has_two_terms ? "two" : "one";
    Sets sets = has_two_terms ? SecondHead() : Sets();
    sets.insert(sets.end(), {"train.on_spike=skip", "batch.accumulate=2"});
    const Outcome outcome = training_.Run(run, sets);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(fmt::format("\nwarning: step 2: {}", Warning)));
    EXPECT_EQ(TimesIn(outcome.err, Warning), 1) << outcome.err;
    EXPECT_EQ(TimesIn(outcome.err, "  loss none  gradient norm 0.000  "), 2) << outcome.err;
    EXPECT_THAT(outcome.err, Not(HasSubstr("nan")));
    const auto losses = NumbersOf(training_ / run, "loss");
    const auto norms = NumbersOf(training_ / run, "grad_norm");
    ASSERT_EQ(losses.size(), 6U);
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_EQ(std::isnan(losses[i]), i == 1 || i == 2) << i;
      EXPECT_EQ(norms[i] == 0, i == 1 || i == 2) << i;
    }
    // The window of losses has those of the four other steps.
    const auto manifest =
        nlohmann::json::parse(ReadText(training_ / run + "/checkpoints/" + CheckpointNameOf(6) + "/manifest.json"));
    EXPECT_EQ(manifest["recent_losses"].size(), 4U) << manifest["recent_losses"];
  }
}

TEST_F(NoTargets, EvaluationReportsThem) {
  WriteTargets(NumTokens - HeldOut, NumTokens);
  for (const bool has_two_terms : {false, true}) {
    const std::string run = has_two_terms ? "two" : "one";
    Sets sets = has_two_terms ? SecondHead() : Sets();
    const Outcome refused = training_.Run(run, sets);
    EXPECT_EQ(refused.status, 3) << refused.err;
    EXPECT_THAT(refused.err,
                HasSubstr("no position of the held-out samples has a target, so no evaluation would have"));
    sets.emplace_back("data.scan=0");
    const Outcome outcome = training_.Run(run, sets);
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(TimesIn(outcome.err, "/6  no validation loss: no position of the held-out samples has a target\n"), 2)
        << outcome.err;
    EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr("nan")), Not(HasSubstr(Warning))));
    const auto losses = NumbersOf(training_ / run, "eval_loss");
    ASSERT_EQ(losses.size(), 2U);
    EXPECT_TRUE(std::isnan(losses[0]));
  }
  const Outcome eval = training_.Eval(training_ / "one/checkpoints/" + CheckpointNameOf(6));
  EXPECT_EQ(eval.status, 3) << eval.err;
  EXPECT_EQ(eval.out, "");
  EXPECT_THAT(eval.err, HasSubstr("no position of the held-out samples has a target, so there is nothing to evaluate"));
}

// The files are on record, and the cut is another one.
TEST_F(NoTargets, AreCountedAgainIfCutDiffers) {
  WriteTargets(NumTokens - HeldOut, NumTokens);
  const Outcome first = training_.Run("run", {"data.eval_tokens=0"});
  ASSERT_EQ(first.status, 0) << first.err;
  const Outcome refused = training_.Run("run", {});
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("no position of the held-out samples has a target"));
}

TEST_F(NoTargets, EmptyFilesAreRefused) {
  WriteTargets(0, NumTokens);
  for (const Sets& sets : {Sets(), SecondHead()}) {
    const Outcome outcome = training_.Run("run", sets);
    EXPECT_EQ(outcome.status, 3) << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("head tokens has no target to train on: "), HasSubstr("[token-file-invalid]\n")));
    EXPECT_FALSE(std::filesystem::exists(training_ / "run"));
  }
  const Outcome unread = training_.Run("run", {"data.scan=0"});
  EXPECT_EQ(unread.status, 0) << unread.err;
  EXPECT_THAT(unread.err, HasSubstr(fmt::format("step 1: {}", Warning)));
}

// Without a scan.
TEST_F(NoTargets, OtherHeadHasNoLoss) {
  WriteTargets(0, NumTokens);
  Sets sets = SecondHead();
  sets.emplace_back("data.targets=['tokens.bin']");
  const Outcome refused = training_.Run("run", sets);
  EXPECT_EQ(refused.status, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("head next has no target to train on: "));
  sets.emplace_back("data.scan=0");
  const Outcome outcome = training_.Run("run", sets);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, AllOf(Not(HasSubstr(Warning)), Not(HasSubstr("loss none")), Not(HasSubstr("nan"))));
  EXPECT_TRUE(std::isnan(NumbersOf(training_ / "run", "loss_next").at(0)));
}

}  // namespace
}  // namespace shardc
