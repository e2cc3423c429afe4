// What check and plan say of recipes and plans that are sound and perhaps not meant: a line each, with the key that
// answers it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "tests/cli/program.h"
#include "tests/support/edited.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::Not;

/// Returns `count` ids below 32 in `bytes` bytes each, as if drawn.
auto Ids(int count, int bytes) -> std::string {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    text += static_cast<char>(state >> 27);
    text.append(static_cast<size_t>(bytes - 1), '\0');
  }
  return text;
}

auto SourcesOf(const std::string& a, const std::string& b) -> std::string {
  const auto source = [](const char* name, const std::string& file) {
    return fmt::format("{{name = \"{}\", tokens = [\"{}\"], weight = 1}}", name, file);
  };
  return fmt::format("data.source=[{}, {}]", source("a", a), source("b", b));
}

class Notes : public testing::Test {
 protected:
  Notes() {
    recipe_ =
        WriteIn(folder_, "sound.toml", Edited(SoundRecipe(), {{"tokens = [\"tokens.bin\"]\n", "format = \"u8\"\n"}}));
    WriteIn(folder_, "tokens.u8", Ids(4096, 1));
    WriteIn(folder_, "other.u8", Ids(6000, 1));
    WriteIn(folder_, "few.u8", Ids(25, 1));
    WriteIn(folder_, "ids.u16", Ids(3000, 2));
    WriteIn(folder_, "ids.u32", Ids(3000, 4));
    std::filesystem::create_symlink(folder_ / "tokens.u8", folder_ / "link.u8");
  }
  auto Ask(std::vector<std::string> arguments, const std::vector<std::string>& sets) -> Finished {
    for (const std::string& set : sets) {
      arguments.insert(arguments.end(), {"--set", set});
    }
    return RunProgram(Shardc(), arguments);
  }

  TemporaryFolder folder_;
  std::string recipe_;
};

TEST_F(Notes, NameTheKeyThatAnswers) {
  const std::string one = "data.tokens=[\"tokens.u8\"]";
  struct Row {
    std::vector<std::string> sets;
    std::string says;
  };
  for (const auto& [sets, says] : std::vector<Row>{
           {{"data.tokens=[\"few.u8\"]", "train.steps=60", "batch.micro=8"},
            "the run takes 480 samples, 8 in a step, and data.tokens holds 3: 160.00 epochs; set data.tokens or "
            "train.steps"},
           {{"data.tokens=[\"few.u8\"]", "train.steps=1", "batch.micro=4"},
            "the run takes 4 samples, 4 in a step, and data.tokens holds 3: 1.33 epochs"},
           {{SourcesOf("few.u8", "tokens.u8"), "train.steps=60", "batch.micro=2"},
            "the run takes 60 samples of source a, 2 in a step, and that holds 3: 20.00 epochs; set data.source"},
           {{one, "optimizer.lr=1e-3 * warmup(200)"},
            "the learning rate rises up to the last of the 10 steps, from 5e-06 to 5e-05, as in a warm-up that the run "
            "does not outlast; set optimizer.lr or train.steps"},
           {{one, "optimizer.lr=3"},
            "the learning rate is at most 3, and adamw moves each element by about as much in a step; set "
            "optimizer.lr"},
           {{SourcesOf("tokens.u8", "link.u8")},
            "source a and source b both name the file " + folder_ / "link.u8" +
                ", so that its samples come from both; set data.source"},
           {{"data.tokens=[\"tokens.u8\", \"tokens.u8\"]"},
            "data.tokens names the file " + folder_ / "tokens.u8" +
                " twice, so that an epoch has its samples twice; set "
                "data.tokens"},
           {{one, "data.eval=[\"link.u8\"]"},
            "data.tokens and data.eval both name the file " + folder_ / "link.u8" +
                ", so that the evaluation is on tokens that are trained on; set data.eval"},
           {{"data.tokens=[\"ids.u16\"]"},
            "the token file " + folder_ / "ids.u16" + " looks like ids of u16, and is read as ids of u8"},
           {{"data.tokens=[\"ids.u32\"]"},
            "the token file " + folder_ / "ids.u32" + " looks like ids of u32, and is read as ids of u8"},
           {{"data.tokens=[\"ids.u32\"]", "data.format=u16"},
            "the token file " + folder_ / "ids.u32" +
                " looks like ids of u32, and is read as ids of u16: every other "
                "id has another distribution; set data.format"},
           {{one, "train.steps=1000"},
            "the run saves at its end alone, so that a crash loses up to 1000 steps; set checkpoint.every"},
           {{one, "train.steps=1000", "checkpoint.every=5000"},
            "the run saves at its end alone, so that a crash loses up to 1000 steps; set checkpoint.every"},
           {{one, "precision.master=bf16", "optimizer.lr=2e-5"},
            "21 of 21 parameters are kept in bf16, whose numbers beside 0.02 lie 0.00012 apart, and the learning rate "
            "is at most 2e-05: most of their updates are rounded away; set precision.master"},
       }) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"check", recipe_}, {"plan", recipe_, "--explain"}}) {
      const Finished told = Ask(command, sets);
      EXPECT_EQ(told.exit_code, 0) << told.err;
      EXPECT_THAT(told.err, HasSubstr("note: " + says)) << command[0];
    }
    const std::string plan = folder_ / "made.plan";
    ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}, sets).exit_code, 0);
    EXPECT_THAT(Ask({"check", plan}, {}).err, HasSubstr("note: " + says));
  }
}

TEST_F(Notes, NothingToSayIsNotSaid) {
  using Sets = std::vector<std::string>;
  const std::string one = "data.tokens=[\"tokens.u8\"]";
  for (const Sets& sets : {
           Sets{one},
           {"data.tokens=[\"few.u8\"]", "train.steps=3"},
           {one, "optimizer.lr=1e-3 * warmup(9)"},
           {one, "optimizer.lr=1e-3 * (0.95 + 0.05 * step / steps)"},
           {SourcesOf("tokens.u8", "other.u8")},
           {one, "data.eval=[\"other.u8\"]"},
           {"data.tokens=[\"ids.u16\"]", "data.format=u16"},
           {"data.tokens=[\"ids.u32\"]", "data.format=u32"},
           {"data.tokens=[\"other.u8\"]", "train.steps=1000", "checkpoint.every=100"},
           {one, "precision.master=bf16", "optimizer.lr=1e-4"},
           {one, "optimizer.lr=2e-5"},
           {one, "optimizer.lr=0.6"},
           {one, "optimizer.lr=3", "optimizer.name=sgd"},
       }) {
    EXPECT_THAT(Ask({"check", recipe_}, sets).err, Not(HasSubstr("note:"))) << testing::PrintToString(sets);
  }
}

TEST_F(Notes, RoundedSeedIsTold) {
  const std::string recipe = SHARDC_SOURCE_DIR "/tests/plan/seed.toml";
  EXPECT_THAT(Ask({"check", recipe}, {}).err, Not(HasSubstr("the seed holds")));
  EXPECT_THAT(Ask({"check", recipe}, {"precision.master=bf16"}).err,
              HasSubstr(" parameters are kept in fewer bits than the seed holds, so that their values are rounded; set "
                        "precision.master\n"));
  EXPECT_THAT(Ask({"check", recipe}, {"optimizer.frozen=[\"*norm.weight\"]", "precision.frozen=bf16"}).err,
              AllOf(HasSubstr(" frozen parameters are kept in fewer bits than the seed holds, so that their values are "
                              "rounded; set precision.frozen\n"),
                    Not(HasSubstr("set precision.master"))));
}

}  // namespace
}  // namespace shardc
