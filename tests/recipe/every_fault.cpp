// All faults of reading and checking a recipe are told in one report; what only follows from another is counted. The
// first fault of syntax ends the reading.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"
#include "compiler/recipe/least_recipe.h"
#include "compiler/recipe/other_tools.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// As the program prints it, with all errors shown.
auto Report(const std::string& text, const std::vector<std::string>& sets = {}) -> std::string {
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe = ReadAndCheck("recipe.toml", text, sets, sources, diagnostics);
  if (recipe) {
    static_cast<void>(Compile(*recipe, {}, diagnostics));
  }
  return RenderText(diagnostics, {.max_errors = 1000});
}

auto NumErrors(std::string_view report) -> int {
  int errors = 0;
  for (size_t at = report.find("error: "); at != std::string_view::npos; at = report.find("error: ", at + 1)) {
    ++errors;
  }
  return errors;
}

constexpr std::string_view Sound = R"toml([model]
family = "llama"
layers = 2
hidden = 64
heads = 4
ffn = 128
vocab = 256
seq = 32
[mesh]
dp = 2
[shard]
units = "block"
[[shard.unit]]
match = ["lm_head.weight"]
[recompute]
policy = "none"
[[init.rule]]
match = "*"
value = "normal(0, 0.02)"
[optimizer]
lr = "1e-3"
clip_norm = 1.0
[[optimizer.group]]
match = "*norm*"
weight_decay = 0.0
[data]
tokens = ["tokens.bin"]
[batch]
global = 8
[train]
steps = 10
log_every = 5
[run]
device = "cpu"
)toml";

struct Slip {
  std::string_view line;
  std::string_view broken;
  /// Of its message.
  std::string_view told;
};

// Independent of each other: none hides another.
constexpr Slip Faults[] = {
    {"heads = 4", "heads = 5", "`hidden` is 64, `heads` is 5"},
    {"policy = \"none\"", "policy = \"ful\"", "`policy` is \"ful\""},
    {"clip_norm = 1.0", "clip_nrm = 1.0", "`clip_nrm` is not known"},
    {"lr = \"1e-3\"", "lr = \"1e-3 *\"", "expected a value, but the text ends"},
    {"device = \"cpu\"", "device = \"tpu\"", "`device` is \"tpu\""},
    {"tokens = [\"tokens.bin\"]", "tokens = \"tokens.bin\"", "`tokens` is the text"},
    {"global = 8", "global = 7", "`global` is 7"},
    {"dp = 2", "dp = 2\npp = 2", "`pp` is not known in [mesh]"},
    {"weight_decay = 0.0", "weight_decay = -1", "`weight_decay` is -1"},
    {"[run]", "[runs]", "[runs] is not a section"},
};

// Faults of patterns, which the passes find.
constexpr Slip NameFaults[] = {
    {"match = \"*norm*\"", "match = \"*nrm*\"", "no parameter matches \"*nrm*\""},
    {"match = [\"lm_head.weight\"]", "match = [\"lm_hed.weight\"]", "no parameter matches \"lm_hed.weight\""},
    {"match = \"*\"\n", "match = \"layers.*.wq.weight\"\n", "no parameter matches \"layers.*.wq.weight\""},
};

auto With(std::string text, const Slip& fault) -> std::string {
  return Edited(std::move(text), {{std::string(fault.line), std::string(fault.broken)}});
}

TEST(EveryFault, TheSoundRecipeHasNone) { EXPECT_EQ(Report(std::string(Sound)), ""); }

TEST(EveryFault, EachIsToldAlone) {
  for (const Slip& fault : Faults) {
    EXPECT_THAT(Report(With(std::string(Sound), fault)), HasSubstr(fault.told));
  }
  for (const Slip& fault : NameFaults) {
    EXPECT_THAT(Report(With(std::string(Sound), fault)), HasSubstr(fault.told));
  }
}

TEST(EveryFault, TwoAreToldTogether) {
  for (size_t i = 0; i < std::size(Faults); ++i) {
    for (size_t j = i + 1; j < std::size(Faults); ++j) {
      const std::string report = Report(With(With(std::string(Sound), Faults[i]), Faults[j]));
      EXPECT_THAT(report, AllOf(HasSubstr(Faults[i].told), HasSubstr(Faults[j].told)));
    }
  }
}

TEST(EveryFault, AllAreToldTogether) {
  std::string text(Sound);
  for (const Slip& fault : Faults) {
    text = With(text, fault);
  }
  const std::string report = Report(text);
  for (const Slip& fault : Faults) {
    EXPECT_THAT(report, HasSubstr(fault.told));
  }
}

TEST(EveryFault, FiveOfAFirstDay) {
  const std::string text = Edited(std::string(Sound), {{"hidden = 64", "hiden = 64"},
                                                       {"heads = 4", "heads = 5"},
                                                       {"global = 8", "global = 7"},
                                                       {"lr = \"1e-3\"", "lr = \"1e-3 * wrmup(10)\""},
                                                       {"log_every = 5", "log_every = \"5\""}});
  EXPECT_THAT(Report(text), AllOf(HasSubstr("`hiden` is not known"), HasSubstr("`hidden` is 64, `heads` is 5"),
                                  HasSubstr("`global` is 7"), HasSubstr("`wrmup` is not known"),
                                  HasSubstr("`log_every` is the text \"5\"")));
}

TEST(EveryFault, WhatFollowsIsHeldBackAndCounted) {
  const std::string report = Report(Edited(std::string(Sound), {{"hidden = 64\n", ""}}));
  EXPECT_THAT(report, HasSubstr("`hidden` is missing in [model]"));
  EXPECT_EQ(NumErrors(report), 1) << report;
  EXPECT_THAT(report, ContainsRegex("\n[0-9]+ more checks wait for this\n$"));
}

TEST(EveryFault, PatternsWaitForPasses) {
  // A rule of init, a group and a unit.
  EXPECT_THAT(Report(With(std::string(Sound), {"clip_norm = 1.0", "clip_nrm = 1.0", ""})),
              testing::EndsWith("\n3 more checks wait for this\n"));
}

TEST(EveryFault, FromNothingToARightRecipeInTwoRounds) {
  const std::string first = Report("");
  for (const std::string_view section : {"model", "init", "optimizer", "data", "batch", "train"}) {
    EXPECT_THAT(first, HasSubstr(fmt::format("[{}]", section)));
  }
  const size_t begin = first.find("help: the least recipe:\n");
  ASSERT_NE(begin, std::string::npos) << first;
  // What stands indented under it, as it is.
  std::string second;
  for (size_t at = first.find('\n', begin) + 1; first.substr(at, 4) == "    " || first[at] == '\n';) {
    const size_t end = first.find('\n', at);
    second += first.substr(at, end + 1 - at);
    at = end + 1;
  }
  EXPECT_EQ(Report(second), "") << second;
}

TEST(EveryFault, FirstSyntaxFaultEndsReading) {
  const std::string report = Report("[model]\nfamily = llama\nlayers = 0\n[mesh\n", {"train.steps=0"});
  EXPECT_THAT(report, StartsWith("recipe.toml:2:10: error: the text is not TOML: "));
  EXPECT_THAT(report, HasSubstr("[toml-syntax]\n    2 | family = llama\n      |          ^"));
  EXPECT_THAT(report, HasSubstr("\nhelp: a line is a header such as [model], or key = value; text stands in quotes\n"));
  // An override is a text of its own.
  EXPECT_THAT(report, HasSubstr("--set:1:13: error: `steps` is 0; allowed: "));
  EXPECT_EQ(NumErrors(report), 2) << report;
  EXPECT_THAT(report, ContainsRegex("\n[0-9]+ more checks wait for these\n$"));
}

TEST(EveryFault, MissingSectionsComeLast) {
  const std::string report = Report("[model]\nflavor = \"8B\"\n");
  EXPECT_LT(report.find("help: write model.preset"), report.find("[optimizer] is missing"));
}

TEST(EveryFault, SplitThatFitsNothingIsOne) {
  const std::string report = Report(With(std::string(Sound), {"dp = 2", "tp = 3", ""}));
  EXPECT_EQ(NumErrors(report), 1) << report;
  EXPECT_THAT(report, AllOf(HasSubstr("`heads` is 4, `tp` is 3"), HasSubstr("note: `ffn` is 128")));
}

TEST(OtherTools, EveryKeyOfTorchtitanIsAnswered) {
  for (const KeyElsewhere& row : TorchtitanKeys()) {
    const std::string report = Report(fmt::format("[{}]\n{} = 1\n", row.section, row.key));
    EXPECT_THAT(report, HasSubstr(fmt::format("{}\n", row.answer))) << row.section << "." << row.key;
    EXPECT_THAT(report, HasSubstr(row.key));
  }
}

TEST(OtherTools, EveryWordIsAnsweredAndNoNearestOne) {
  for (const Hint& hint : Hints()) {
    EXPECT_THAT(Report(fmt::format("[mesh]\n{} = 2\n", hint.word)), HasSubstr(fmt::format("help: {}\n", hint.answer)));
  }
  for (const KeyElsewhere& row : HintsInSections()) {
    EXPECT_THAT(Report(fmt::format("[{}]\n{} = 2\n", row.section, row.key)),
                HasSubstr(fmt::format("help: {}\n", row.answer)));
  }
  for (const Hint& section : TorchtitanSections()) {
    EXPECT_THAT(Report(fmt::format("[{}]\n", section.word)), HasSubstr(fmt::format("help: {}\n", section.answer)));
  }
}

TEST(OtherTools, AnswersNameMeantKey) {
  struct Case {
    std::string section;
    std::string key;
    std::string answer;
  };
  const Case cases[] = {
      {"optimizer", "l2", "write optimizer.weight_decay: "},
      {"optimizer", "weight_decay_bias", "write a group: [[optimizer.group]] "},
      {"optimizer", "min_lr", "optimizer.lr = \""},
      {"optimizer", "warmup_ratio", "optimizer.lr = \""},
      {"train", "warmup_iters", "optimizer.lr = \""},
      {"optimizer", "max_norm", "write optimizer.clip_norm\n"},
      {"train", "grad_clip_norm", "write optimizer.clip_norm\n"},
      {"train", "save_every", "write checkpoint.every\n"},
      {"data", "dtype", "write data.format = "},
      {"data", "shuffle", "write data.order = "},
      {"model", "dtype", "rounds the parameters themselves at each update\n"},
      {"run", "dtype", "write precision.compute = "},
      {"model", "context", "write model.seq\n"},
      {"precision", "moments", "moments are always kept in fp32\n"},
      {"start", "resume", "a launch continues from the newest checkpoint of its run\n"},
  };
  for (const Case& test : cases) {
    const std::string report = Report(fmt::format("[{}]\n{} = 1\n", test.section, test.key));
    EXPECT_THAT(report, HasSubstr(fmt::format("`{}` is not known in [{}]", test.key, test.section)));
    EXPECT_THAT(report, HasSubstr(test.answer)) << test.section << "." << test.key;
    EXPECT_THAT(report, Not(HasSubstr("did you mean"))) << test.section << "." << test.key;
  }
}

TEST(OtherTools, AnswersNameWhatIsHere) {
  const std::string report = Report(
      "[model]\nflavor = \"8B\"\n[metrics]\nenable_tensorboard = true\n[profiling]\nenable_profiling = true\n"
      "[train]\ntensorboard = true\n");
  EXPECT_THAT(report,
              HasSubstr("help: write model.preset, such as \"llama3-8b\"; `shardc presets` lists the models\n"));
  EXPECT_THAT(report, HasSubstr("note: `enable_tensorboard`: a run writes metrics.jsonl; tools/log_metrics.py"));
  EXPECT_THAT(report, HasSubstr("help: a run writes metrics.jsonl; tools/log_metrics.py"));
  EXPECT_THAT(report, HasSubstr("note: `enable_profiling`: on the command line: `shardc run RECIPE --trace FILE"));
}

}  // namespace
}  // namespace shardc
