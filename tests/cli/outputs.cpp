// Where results go: never over what is read, and never nowhere without a word.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include "tests/cli/program.h"
#include "tests/support/process.h"

namespace shardc {
namespace {

using testing::HasSubstr;

TEST(Outputs, ReplaceNothingThatIsRead) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  const std::string tokens = folder / "tokens.bin";
  const std::string text = WriteIn(folder, "text.txt", "some text");
  const std::string link = folder / "link.toml";
  std::filesystem::create_symlink(recipe, link);
  const std::string plan = folder / "sound.plan";
  ASSERT_EQ(RunProgram(Shardc(), {"tokenize", "--bytes", text, "-o", tokens}).exit_code, 0);
  const std::vector<std::string> small{"--set", "model.seq=2", "--set", "model.vocab=256"};
  const auto with_small = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), small.begin(), small.end());
    return arguments;
  };
  ASSERT_EQ(RunProgram(Shardc(), with_small({"plan", recipe, "-o", plan})).exit_code, 0);
  const std::string plan_before = ReadText(plan);
  const std::string tokens_before = ReadText(tokens);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{with_small({"plan", recipe, "-o", recipe}),
                                             with_small({"plan", recipe, "-o", folder / "./sound.toml"}),
                                             with_small({"plan", recipe, "-o", link}),
                                             with_small({"plan", link, "-o", recipe}),
                                             with_small({"plan", recipe, "--format", "html", "-o", recipe}),
                                             with_small({"plan", recipe, "--emit=recipe", "-o", recipe}),
                                             with_small({"plan", recipe, "-o", tokens}),
                                             {"plan", plan, "-o", plan},
                                             {"tokenize", "--bytes", text, "-o", text},
                                             with_small({"run", recipe, "--trace", recipe}),
                                             with_small({"run", recipe, "--trace", tokens}),
                                             {"run", plan, "--trace", plan}}) {
    const Finished refused = RunProgram(Shardc(), arguments);
    EXPECT_EQ(refused.exit_code, 2) << arguments[0] << " " << arguments.back() << "\n" << refused.err;
    EXPECT_THAT(refused.err, HasSubstr(" would replace ")) << arguments[0];
  }
  EXPECT_EQ(ReadText(recipe), SoundRecipe());
  EXPECT_EQ(ReadText(text), "some text");
  EXPECT_EQ(ReadText(plan), plan_before);
  EXPECT_EQ(ReadText(tokens), tokens_before);
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  // Another file may be replaced.
  EXPECT_EQ(RunProgram(Shardc(), with_small({"plan", recipe, "-o", plan})).exit_code, 0);
}

TEST(Outputs, ToAClosedStdoutAreErrors) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"presets"}, {"help", "optimizer.lr"}, {"--version"}, {"completion", "bash"}}) {
    std::vector<std::string> command{Shardc()};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const Outcome outcome = RunProcess(command, {.before_exec = [] { close(STDOUT_FILENO); }});
    EXPECT_EQ(outcome.status, 6) << arguments[0];
    EXPECT_THAT(outcome.err, HasSubstr("cannot write to stdout: Bad file descriptor")) << arguments[0];
  }
}

TEST(Outputs, OfTheRuntimeToAClosedStdoutAreErrors) {
  const Outcome doctor = RunProcess({Shardc(), "doctor"}, {.before_exec = [] { close(STDOUT_FILENO); }});
  EXPECT_EQ(doctor.status, 6);
  EXPECT_THAT(doctor.err, HasSubstr("cannot write to stdout"));
  const Outcome help =
      RunProcess({SHARDC_BINARY_DIR "/shardc-run", "--help"}, {.before_exec = [] { close(STDOUT_FILENO); }});
  EXPECT_EQ(help.status, 6);
}

// As a variable of a script does that is not set.
TEST(Outputs, OptionsWithAnEmptyValueAreRefused) {
  const TemporaryFolder folder;
  const std::string recipe = WriteIn(folder, "sound.toml", SoundRecipe());
  for (const auto& [command, option] :
       {std::pair("plan", "--fit"), std::pair("plan", "--output"), std::pair("plan", "--run-dir"),
        std::pair("run", "--trace"), std::pair("run", "--run-dir"), std::pair("run", "--timeout")}) {
    const Finished refused = RunProgram(Shardc(), {command, recipe, option, ""});
    EXPECT_EQ(refused.exit_code, 2) << option;
    EXPECT_THAT(refused.err, HasSubstr(std::string(option) + ": the value is empty")) << option;
  }
}

TEST(Outputs, OptionsAreToldOfInOurWords) {
  const auto error_of = [](const std::vector<std::string>& arguments) { return RunProgram(Shardc(), arguments).err; };
  EXPECT_THAT(error_of({"plan", "--fit", "h100", "--fit", "h200", "r.toml"}),
              HasSubstr("--fit is given more than once"));
  EXPECT_THAT(error_of({"plan", "r.toml", "--fit"}), HasSubstr("--fit needs MEMORY|MACHINE\n"));
  EXPECT_THAT(error_of({"plan", "--explain=json", "r.toml"}), HasSubstr("--explain takes no value\n"));
}

}  // namespace
}  // namespace shardc
