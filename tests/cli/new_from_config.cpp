// Recipes that `shardc new --from` makes of configurations of other trainers: `shardc check` accepts them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/program.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/torchtitan_json.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(NewFromConfig, MakesRecipesThatPassTheCheck) {
  const TemporaryFolder folder;
  WriteText(folder / "tokens.bin", std::string(4'000'000, '\0'));
  for (const Dialect dialect : {Dialect::Sequences, Dialect::Tokens}) {
    const std::string recipe = folder / (dialect == Dialect::Tokens ? "tokens.toml" : "sequences.toml");
    WriteText(folder / "train.json", TorchtitanJson(dialect).dump());
    const Finished made = RunProgram(Shardc(), {"new", recipe, "--from", folder / "train.json"});
    EXPECT_EQ(made.exit_code, 0) << made.err;
    const Finished checked = RunProgram(Shardc(), {"check", recipe, "--strict", "--set", "data.format=u16"});
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    const Finished plan = RunProgram(Shardc(), {"plan", "--explain", recipe, "--set", "data.format=u16"});
    EXPECT_THAT(plan.out, AllOf(HasSubstr("llama, 32 blocks, hidden 4096, heads 32 / 8 kv of 128, ffn 14336, vocab "
                                          "128256, seq 8192\n"),
                                HasSubstr("parameters  8,030,261,248 in all")));
  }
}

TEST(NewFromConfig, WritesNothingOfOtherFiles) {
  const TemporaryFolder folder;
  WriteText(folder / "train.json", "{\"training\": {}}");
  const Finished made = RunProgram(Shardc(), {"new", folder / "made.toml", "--from", folder / "train.json"});
  EXPECT_EQ(made.exit_code, 3);
  EXPECT_THAT(made.err, HasSubstr("train.json is JSON, and no configuration of torchtitan"));
  EXPECT_FALSE(std::filesystem::exists(folder / "made.toml"));
}

TEST(NewFromConfig, RefusesNumbersThatAreNotFinite) {
  const TemporaryFolder folder;
  for (const char* number : {"nan", "inf", "-inf"}) {
    WriteText(folder / "train.toml",
              fmt::format("[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n[optimizer]\nlr = {}\n", number));
    const Finished made = RunProgram(Shardc(), {"new", folder / "made.toml", "--from", folder / "train.toml"});
    EXPECT_EQ(made.exit_code, 3) << made.err;
    EXPECT_THAT(made.err, HasSubstr(fmt::format("[optimizer] lr = {}: it has to be a finite number", number)));
    EXPECT_FALSE(std::filesystem::exists(folder / "made.toml"));
  }
}

}  // namespace
}  // namespace shardc
