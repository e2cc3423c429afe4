// Runs that begin from another run's checkpoint, by the programs: what a start says, what a restart needs, and what is
// refused before the first step. That the values are right is tested in tests/parity/seed.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "compiler/plan/init_rule.h"
#include "tests/support/edited.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* SeedPath = "base/checkpoints/step-00000004";

class SeedRun : public testing::Test {
 protected:
  SeedRun() : training_({"train.eval_every=0"}) {
    const Outcome base = training_.Run("base", {"train.steps=4"});
    EXPECT_EQ(base.status, 0) << base.err;
  }

  /// `more`: members of the table beside the seed.
  static auto Second(Sets sets, const std::string& more = "") -> Sets {
    sets.emplace_back("start.run_id=second");
    sets.push_back(fmt::format("start.first={{ seed = \"{}\"{} }}", SeedPath, more));
    return sets;
  }
  auto RunSecond(const std::string& run, const Sets& sets) const -> Outcome { return training_.Run(run, Second(sets)); }
  auto seed() const -> std::string { return training_ / SeedPath; }

  Training training_;
};

TEST_F(SeedRun, BeginsAsTheOtherRunEnded) {
  // Nothing is updated at a learning rate of 0.
  const Outcome second = RunSecond("second", {"train.steps=1", "optimizer.lr=0"});
  ASSERT_EQ(second.status, 0) << second.err;
  const auto num_parameters = training_.Compile().parameters.size();
  EXPECT_THAT(second.err,
              HasSubstr(fmt::format("run second: started from seed {} (step 4 of run tiny), {} parameters loaded, 0 "
                                    "generated (no earlier checkpoint in ",
                                    seed(), num_parameters)));
  EXPECT_THAT(second.err, HasSubstr(" s to initialise, 0 elements drawn\n"));
  const Metrics base = ReadMetrics(training_ / "base");
  const Metrics metrics = ReadMetrics(training_ / "second");
  ASSERT_EQ(base.evals.size(), 1U);
  ASSERT_EQ(metrics.evals.size(), 1U);
  EXPECT_EQ(metrics.evals[0].second, base.evals[0].second);
  // And not as a start from scratch does.
  EXPECT_LT(metrics.steps.at(0).loss, ReadMetrics(training_ / "base").steps.at(0).loss);
  EXPECT_EQ(ReadText(training_ / "second/seed.json"), ReadText(seed() + "/manifest.json"));
}

TEST_F(SeedRun, CountsAndRecordsWhatIsGenerated) {
  const Sets sets = Second({"train.steps=1", "model.vocab=300"},
                           R"(, missing = ["lm_head.weight", "model.embed*"], unused = ["*head*", "*embed*"])");
  const Outcome second = training_.Run("second", sets);
  ASSERT_EQ(second.status, 0) << second.err;
  const Plan plan = training_.Compile(sets);
  int64_t generated = 0;
  for (const Parameter& parameter : plan.parameters) {
    generated += LoadedTensorOf(parameter) ? 0 : parameter.num_elements();
  }
  EXPECT_EQ(generated, 2 * 300 * 32);
  EXPECT_THAT(second.err, AllOf(HasSubstr(fmt::format("{} parameters loaded, 2 generated (no earlier checkpoint",
                                                      plan.parameters.size() - 2)),
                                HasSubstr(fmt::format(" s to initialise, {} elements drawn\n", generated))));
  std::vector<std::string> arguments{"--print-init", "--run-dir", training_ / "second"};
  for (const std::string& set : sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome printed = RunProcess(training_.Command("plan", arguments));
  EXPECT_THAT(printed.out, HasSubstr("realised in " + training_ / "second/attempts/0001/init.json"));
  EXPECT_THAT(printed.out, testing::ContainsRegex(
                               "model\\.norm\\.weight +\\[32\\] +seed\\('model\\.norm\\.weight'\\) +- +- +- +- "));
  EXPECT_THAT(
      printed.out,
      testing::ContainsRegex("lm_head\\.weight +\\[300, 32\\] +normal\\(0, 0\\.17[0-9]*\\) +0 +0\\.17[0-9]+ +-?[0-9]"));
}

TEST_F(SeedRun, RulesThatReadItAreCounted) {
  // Of the rows of one, a part is read and the rest drawn; the other copies it.
  const Sets sets = Second(
      {"train.steps=1", "model.vocab=300",
       "init.rule=[{match = \"model.embed*\", value = \"if index(0) < 256 then seed('model.embed_tokens.weight', "
       "index(0), index(1)) else normal(0, 1)\"}, {match = \"lm_head.weight\", value = "
       "\"copy('model.embed_tokens.weight')\"}, {match = \"*norm.weight\", value = 1}]"},
      R"(, missing = ["lm_head.weight", "model.embed*", "model.norm.weight"], unused = ["*head*", "model.norm*"])");
  const Outcome second = training_.Run("second", sets);
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err,
              HasSubstr(fmt::format("{} parameters loaded, 2 read by rules, 1 generated (no earlier checkpoint",
                                    training_.Compile(sets).parameters.size() - 3)));
  EXPECT_THAT(second.err,
              HasSubstr(fmt::format(" s to initialise, 32 elements drawn, {} read by rules\n", 2 * 300 * 32)));
}

TEST_F(SeedRun, ARestartNeedsNoSeed) {
  ASSERT_EQ(RunSecond("whole", {"train.steps=6", "train.eval_every=3"}).status, 0);
  ASSERT_EQ(RunSecond("second", {"train.steps=3", "train.eval_every=3"}).status, 0);
  std::filesystem::remove_all(training_ / "base");
  const Outcome again = RunSecond("second", {"train.steps=6", "train.eval_every=3"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err,
              AllOf(HasSubstr(fmt::format("run second: resumed from {}/checkpoints/step-00000003 at step 3\n",
                                          training_ / "second")),
                    HasSubstr(" s to load, 0 elements drawn\n")));
  ExpectSameRun(training_ / "second", training_ / "whole");
  // So does an evaluation.
  const Sets sets = Second({"train.steps=6"});
  std::vector<std::string> arguments{"--checkpoint", training_ / "second/checkpoints/step-00000006"};
  for (const std::string& set : sets) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome evaluated = RunProcess(training_.Command("eval", arguments));
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;

  // Neither the record alone nor nothing at all is a start from scratch.
  std::filesystem::remove_all(training_ / "second/checkpoints");
  const Outcome lost = RunSecond("second", {"train.steps=6"});
  EXPECT_EQ(lost.status, 5);
  EXPECT_THAT(lost.err, HasSubstr("step 6 of it was saved to "));
  std::filesystem::remove(training_ / "second/saves.jsonl");
  const Outcome without_checkpoint = RunSecond("second", {"train.steps=6"});
  EXPECT_EQ(without_checkpoint.status, 5);
  EXPECT_THAT(without_checkpoint.err, HasSubstr("the run begins from another's parameters: checkpoint " + seed()));
  const Outcome elsewhere = RunSecond("elsewhere", {"train.steps=6"});
  EXPECT_EQ(elsewhere.status, 3);
  EXPECT_THAT(elsewhere.err,
              AllOf(HasSubstr("cannot be read: there is no such folder"), HasSubstr("[seed-unreadable]")));
}

TEST_F(SeedRun, ADamagedSeedIsRefusedBeforeTheFirstStep) {
  std::string text = ReadText(seed() + "/rank-00001.safetensors");
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 4);
  WriteText(seed() + "/rank-00001.safetensors", text);
  const Outcome second = RunSecond("second", {"train.steps=1"});
  EXPECT_EQ(second.status, 5) << second.err;
  EXPECT_THAT(second.err, AllOf(HasSubstr("/rank-00001.safetensors is damaged: the digest of bytes [0, "),
                                HasSubstr("; begin from another checkpoint"), Not(HasSubstr("started from"))));
  EXPECT_FALSE(std::filesystem::exists(training_ / "second/metrics.jsonl"));
}

TEST_F(SeedRun, AnotherManifestThanThePlansIsRefused) {
  std::vector<std::string> arguments{"-o", training_ / "second.plan"};
  for (const std::string& set : Second({"train.steps=1"})) {
    arguments.insert(arguments.end(), {"--set", set});
  }
  const Outcome planned = RunProcess(training_.Command("plan", arguments));
  ASSERT_EQ(planned.status, 0) << planned.err;
  ASSERT_EQ(training_.Run("other", {"train.steps=4", "init.seed=8"}).status, 0);
  std::filesystem::rename(seed(), training_ / "away");
  std::filesystem::rename(training_ / "other/checkpoints/step-00000004", seed());
  const std::vector<std::string> run{training_.Command("run")[0], "run", training_ / "second.plan", "--run-dir",
                                     training_ / "second"};
  const Outcome refused = RunProcess(run);
  EXPECT_EQ(refused.status, 5) << refused.err;
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("it is not the one that the plan was made for: the digest of its manifest is"),
                    Not(HasSubstr("started from"))));
  // The recipe is planned again.
  EXPECT_EQ(RunSecond("second", {"train.steps=1"}).status, 0);
}

TEST(CutSeed, IsAnErrorWithItsNameAndNoSignal) {
  const Training training({"train.eval_every=0", "train.steps=1", "model.vocab=8192", "model.hidden=128"});
  ASSERT_EQ(training.Run("base").status, 0);
  const std::string seed = training / "base/checkpoints/step-00000001";
  WriteText(training / "tiny.toml",
            Edited(std::string(TinyRecipe()),
                   {{"match = \"*tokens.weight\"\nvalue = \"normal(0, 1)\"",
                     "match = \"*tokens.weight\"\nvalue = \"0.5 * seed('model.embed_tokens.weight')\""}}));
  const std::string file = seed + "/rank-00001.safetensors";
  const std::string good = ReadText(file);
  int num_cut = 0;
  // The cut comes as soon as the file is seen to be mapped. Now and then the rank has read all of it by then.
  for (int i = 0; i < 20 && num_cut < 3; ++i) {
    const std::string run = fmt::format("run-{}", i);
    Process process(training.RunCommand(
        run, {"start.run_id=second",
              fmt::format("start.first={{ seed = \"{}\", missing = [\"model.embed_tokens.weight\"] }}", seed)}));
    const auto ranks = process.AwaitChildren(2);
    const auto is_mapped = [&] {
      return std::any_of(ranks.begin(), ranks.end(), [&](pid_t rank) {
        return ReadText(fmt::format("/proc/{}/maps", rank)).find(file) != std::string::npos;
      });
    };
    if (process.Await(is_mapped)) {
      std::filesystem::resize_file(file, 4096);
    }
    const Outcome outcome = process.Wait();
    if (outcome.status != 0) {
      ++num_cut;
      EXPECT_EQ(outcome.status, 5) << outcome.err;
      EXPECT_THAT(outcome.err, AnyOf(HasSubstr(file + " was cut short while it was read: it had "),
                                     HasSubstr(file + " ends at byte 4096")));
      EXPECT_THAT(outcome.err, Not(HasSubstr("signal")));
      EXPECT_FALSE(std::filesystem::exists(training / (run + "/metrics.jsonl")));
    }
    WriteText(file, good);
  }
  EXPECT_GE(num_cut, 1);
}

}  // namespace
}  // namespace shardc
