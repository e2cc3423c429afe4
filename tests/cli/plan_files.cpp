// Plan files given to check, plan, run and eval: one judge for all of them, and one answer to what is neither a recipe
// nor a plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/program.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

auto Ask(const std::vector<std::string>& arguments) -> Finished { return RunProgram(Shardc(), arguments); }
auto CanRun() -> bool { return std::filesystem::exists(SHARDC_BINARY_DIR "/shardc-run"); }

/// A recipe, its plan, and that plan with its first AdamW op left out.
class PlanFiles : public testing::Test {
 protected:
  PlanFiles() {
    EXPECT_EQ(Ask({"plan", recipe_, "-o", plan_}).exit_code, 0);
    std::string text = ReadText(plan_);
    const size_t op = text.find("adamw ");
    const size_t line = text.rfind('\n', op);
    text.erase(line, text.find('\n', op) - line);
    broken_ = WriteIn(folder_, "broken.plan", text);
    torn_ = WriteIn(folder_, "torn.plan", text.substr(0, text.size() / 2));
  }

  TemporaryFolder folder_;
  std::string recipe_ = WriteIn(folder_, "sound.toml", SoundRecipe());
  std::string plan_ = folder_ / "sound.plan";
  std::string broken_;
  std::string torn_;
};

TEST_F(PlanFiles, CheckAcceptsWhatTheVerifierAccepts) {
  const Finished finished = Ask({"check", plan_});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, plan_ + ": ok\n");
  EXPECT_EQ(Ask({"check", plan_, "--format=json", "--strict"}).out, "");
}

TEST_F(PlanFiles, AllCommandsRefuseAPlanInTheSameWords) {
  for (const std::string& path : {broken_, torn_}) {
    const Finished checked = Ask({"check", path});
    EXPECT_EQ(checked.exit_code, 3);
    EXPECT_EQ(checked.out, "");
    EXPECT_THAT(checked.err, StartsWith("error: " + path));
    EXPECT_THAT(checked.err, EndsWith("\nmake the plan again from its recipe: shardc plan RECIPE -o FILE\n"));
    std::vector<std::vector<std::string>> commands{{"plan", path}, {"plan", path, "--explain"}};
    if (CanRun()) {
      commands.push_back({"run", path, "--run-dir", folder_ / "run"});
      commands.push_back({"eval", path, "--checkpoint", RepositoryPath(SampleSeed)});
    }
    for (const auto& command : commands) {
      const Finished finished = Ask(command);
      EXPECT_EQ(finished.exit_code, 3) << command[0];
      EXPECT_EQ(finished.out, "") << command[0];
      EXPECT_EQ(finished.err, checked.err) << command[0];
    }
  }
  EXPECT_THAT(Ask({"check", broken_}).err,
              HasSubstr(" does not verify, 1 finding:\n  sub-vector v0 of unit embed is updated 0 times per step "
                        "[update-missing]\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(PlanFiles, InJsonEachFindingIsALine) {
  const Finished text = Ask({"check", broken_});
  const Finished finished = Ask({"check", broken_, "--format=json"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.err, "");
  ASSERT_THAT(finished.out, EndsWith("\n"));
  for (size_t begin = 0; begin < finished.out.size();) {
    const size_t end = finished.out.find('\n', begin);
    const auto line = nlohmann::json::parse(finished.out.substr(begin, end - begin));
    EXPECT_EQ(line["name"], "plan-rejected");
    EXPECT_EQ(line["file"], broken_);
    EXPECT_THAT(text.err, HasSubstr(line["message"].get<std::string>()));
    begin = end + 1;
  }
}

TEST_F(PlanFiles, APlanFileShowsWhatItsRecipeShows) {
  const std::vector<std::vector<std::string>> questions{{},
                                                        {"--explain"},
                                                        {"--explain", "--format=json"},
                                                        {"--format=json"},
                                                        {"--emit=model"},
                                                        {"--section=step"},
                                                        {"--print-init"},
                                                        {"--print-init", "--format=json"}};
  for (const auto& question : questions) {
    std::vector<std::string> of_recipe{"plan", recipe_};
    std::vector<std::string> of_plan{"plan", plan_};
    of_recipe.insert(of_recipe.end(), question.begin(), question.end());
    of_plan.insert(of_plan.end(), question.begin(), question.end());
    const Finished shown = Ask(of_plan);
    EXPECT_EQ(shown.exit_code, 0) << shown.err;
    EXPECT_EQ(shown.out, Ask(of_recipe).out) << (question.empty() ? "" : question[0]);
  }
  ASSERT_EQ(Ask({"plan", plan_, "-o", folder_ / "again.plan"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "again.plan"), ReadText(plan_));
}

TEST_F(PlanFiles, OptionsThatActOnARecipeAreRefused) {
  const std::vector<std::vector<std::string>> commands{
      {"check", plan_, "--set", "train.steps=3"}, {"plan", plan_, "--set", "train.steps=3"},
      {"run", plan_, "--set", "train.steps=3"},   {"eval", plan_, "--checkpoint", "x", "--set", "train.steps=3"},
      {"plan", plan_, "--emit=recipe"},           {"plan", plan_, "--stop-after=place"},
      {"plan", plan_, "--print-after=all"},       {"plan", plan_, "--disable=schedule"},
  };
  for (const auto& command : commands) {
    const Finished finished = Ask(command);
    EXPECT_EQ(finished.exit_code, 2) << command[0];
    EXPECT_EQ(finished.out, "");
    EXPECT_THAT(finished.err,
                HasSubstr(fmt::format(" acts on a recipe, and {} is a plan; make the plan again", plan_)));
  }
}

TEST_F(PlanFiles, APlanThatIsForReadingIsToldSo) {
  const std::string path = folder_ / "partial.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "--stop-after=schedule", "-o", path}).exit_code, 0);
  EXPECT_THAT(Ask({"check", path}).err, HasSubstr("pass allocate was not run in its place [pass-missing]"));
  ASSERT_EQ(Ask({"plan", recipe_, "--disable=recompute", "-o", path}).exit_code, 0);
  const Finished disabled = Ask({"check", path});
  EXPECT_EQ(disabled.exit_code, 3);
  EXPECT_THAT(disabled.err, HasSubstr("with the pass recompute disabled; it is for reading, not for running"));
}

TEST_F(PlanFiles, OtherFilesAreRefused) {
  struct Case {
    std::string path;
    std::string reason;
  };
  const Case cases[] = {
      {"/dev/zero", "[recipe-too-large]"},
      {WriteIn(folder_, "model.safetensors", std::string("abc\0\0\1", 6)),
       "byte 4 is zero, so it is no text; name a recipe (TOML), and files of tokens by its key data.tokens"},
      {WriteIn(folder_, "manifest.json", "{\n \"format\": \"shardc checkpoint\"\n}\n"), "the text is not TOML: "},
      {WriteIn(folder_, "log.txt", "run quickstart: started from scratch\n"), "the text is not TOML: "},
      {WriteIn(folder_, "late.plan", "group g\n" + ReadText(plan_)), "the text is not TOML: "},
  };
  for (const Case& c : cases) {
    std::vector<std::vector<std::string>> commands{
        {"check", c.path}, {"plan", c.path}, {"run", c.path}, {"eval", c.path, "--checkpoint", "x"}};
    for (const auto& command : commands) {
      const Finished finished = Ask(command);
      EXPECT_EQ(finished.exit_code, 3) << command[0] << " " << c.path;
      EXPECT_EQ(finished.out, "");
      EXPECT_THAT(finished.err, HasSubstr(c.reason)) << command[0];
      EXPECT_EQ(finished.err.find("error: "), finished.err.rfind("error: ")) << finished.err;
    }
  }
}

TEST_F(PlanFiles, APlanMayBeginWithCommentsAndHaveItsFirstFieldsInAnyOrder) {
  const std::string text = ReadText(plan_);
  const size_t end = text.find('\n');
  std::istringstream words(text.substr(0, end));
  std::string line;
  for (std::string word; words >> word;) {
    line = word == "plan" ? "" : " " + word + line;
  }
  const std::string path =
      WriteIn(folder_, "late.plan", "\n  // after schedule\n plan" + line + "  // kernels first" + text.substr(end));
  const Finished checked = Ask({"check", path});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_EQ(Ask({"plan", path}).out, text);
}

TEST_F(PlanFiles, ASectionIsPrintedAndNotWritten) {
  for (const std::string& path : {recipe_, plan_}) {
    const Finished printed = Ask({"plan", path, "--section=step"});
    EXPECT_EQ(printed.exit_code, 0) << printed.err;
    EXPECT_THAT(printed.out, HasSubstr("section step {"));
    const Finished written = Ask({"plan", path, "--section=step", "-o", folder_ / "step.plan"});
    EXPECT_EQ(written.exit_code, 2);
    EXPECT_EQ(written.out, "");
    EXPECT_EQ(written.err,
              "error: --section prints a section to read, and -o writes a plan that reads back whole: leave one of "
              "them out\n");
    EXPECT_FALSE(std::filesystem::exists(folder_ / "step.plan"));
  }
}

TEST_F(PlanFiles, APlanInAnotherEncodingIsToldSo) {
  const std::string text = ReadText(plan_);
  EXPECT_THAT(Ask({"check", WriteIn(folder_, "mark.plan", "\xef\xbb\xbf" + text)}).err,
              HasSubstr("mark.plan:1:1: the text begins with a byte order mark"));
  std::string windows;
  for (const char c : text) {
    windows += c == '\n' ? "\r\n" : std::string(1, c);
  }
  EXPECT_THAT(Ask({"check", WriteIn(folder_, "windows.plan", windows)}).err,
              AllOf(HasSubstr("windows.plan:1:"), HasSubstr(": the line ends in CRLF")));
}

TEST_F(PlanFiles, FilesThatCannotBeReadEndWithAReason) {
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  struct Case {
    std::string path;
    std::string message;
  };
  for (const Case& c : {Case{folder_ / "fifo", "it is a FIFO; give a file"}, Case{folder_.path(), "Is a directory"},
                        Case{folder_ / "missing.plan", "No such file or directory"}}) {
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"check", c.path}, std::vector<std::string>{"plan", "--explain", c.path},
          std::vector<std::string>{"run", c.path}}) {
      const Finished finished = Ask(command);
      EXPECT_EQ(finished.exit_code, 2) << command[0];
      EXPECT_THAT(finished.err, HasSubstr(c.message)) << command[0];
    }
  }
}

TEST_F(PlanFiles, APlanIsReadFromAPipe) {
  const Finished finished = RunProgram(
      "/bin/sh", {"-c", fmt::format("cat {0} | {1} check /dev/stdin && cat {0} | {1} plan --explain /dev/stdin", plan_,
                                    Shardc())});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "/dev/stdin: ok\n" + Ask({"plan", "--explain", plan_}).out);
}

}  // namespace
}  // namespace shardc
