// --fit, --format html and diff, as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/program.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class Decide : public testing::Test {
 protected:
  auto Ask(const std::vector<std::string>& arguments) const -> Finished { return RunProgram(Shardc(), arguments); }

  const TemporaryFolder folder_;
  const std::string recipe_ = WriteIn(folder_, "a.toml", SoundRecipe());
};

/// A busy machine takes more than the second in which the command is silent.
constexpr const char* ProgressLines = "(planned [^\n]*\n)*";

TEST_F(Decide, FitIsToldByTheExitCode) {
  const Finished fits = Ask({"plan", recipe_, "--fit", "80GiB"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_THAT(fits.err, MatchesRegex(ProgressLines));
  EXPECT_THAT(fits.out, AllOf(StartsWith("fits: each rank takes "), HasSubstr("recompute.policy=full"),
                              ContainsRegex("of the 80.0 GiB that `--fit`[ \n]+allows;"), HasSubstr(" are left\n")));
  const Finished small = Ask({"plan", recipe_, "--fit=1KiB"});
  EXPECT_EQ(small.exit_code, 4);
  EXPECT_THAT(small.out, AllOf(StartsWith("does not fit: each rank takes "),
                               ContainsRegex("more than the 1.00[ \n]+KiB that `--fit` allows\n")));
  EXPECT_THAT(Ask({"plan", recipe_, "--fit", "1GiB", "--set", "batch.micro=1"}).out,
              HasSubstr("not batch.micro: it is already 1\n"));
  EXPECT_THAT(small.err, MatchesRegex(ProgressLines));
  EXPECT_EQ(Ask({"plan", recipe_, "--fit", "h100"}).exit_code, 0);
  const Finished unknown = Ask({"plan", recipe_, "--fit", "h300"});
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("machines: a100-sxm-80gb, h100-sxm"));
  EXPECT_EQ(Ask({"plan", recipe_, "--fit", "H100"}).exit_code, 0);
  EXPECT_THAT(Ask({"plan", recipe_, "--fit", "h10-sxm"}).err, HasSubstr("; did you mean h100-sxm?\n"));
  EXPECT_THAT(Ask({"plan", recipe_, "--fit", "1e3GiB"}).err,
              HasSubstr("`1e3GiB` has an exponent; write the number out, such as 1000GiB\n"));
  for (const char* wrong : {"80EiB", "1EB", "5elephants", "80e+", "3e"}) {
    EXPECT_THAT(Ask({"plan", recipe_, "--fit", wrong}).err,
                HasSubstr(fmt::format("`{}` is no amount of memory: write a number", wrong)));
  }
  for (const char* other : {"--print-init", "--emit=plan", "--stop-after=build", "--section=step"}) {
    EXPECT_EQ(Ask({"plan", recipe_, "--fit", "1GiB", other}).exit_code, 2) << other;
  }
}

TEST_F(Decide, FitNamesCombinationAndRanks) {
  const Finished fits = Ask({"plan", recipe_, "--fit", "80GiB"});
  EXPECT_THAT(fits.err, MatchesRegex(ProgressLines));
  EXPECT_THAT(fits.out, AllOf(HasSubstr("\nthe cheapest combination of keys that fits"),
                              HasSubstr("\nthe least number of ranks that fits, other keys as they are: 1\n")));
  const Finished none = Ask({"plan", recipe_, "--fit", "1KiB"});
  EXPECT_THAT(none.out, AllOf(HasSubstr("\nno combination of keys fits on 1 rank; "),
                              HasSubstr("\nmore ranks alone do not help: "), HasSubstr("\nno number of ranks up to ")));
}

TEST_F(Decide, FitNamesFastestForMachine) {
  const Finished hopper = Ask({"plan", recipe_, "--fit", "h100"});
  EXPECT_THAT(hopper.out, AllOf(HasSubstr("\nthe fastest combination of keys that was found, number types unchanged"),
                                HasSubstr("estimated for h100-sxm"), Not(HasSubstr("lacks the instructions"))));
  EXPECT_THAT(Ask({"plan", recipe_, "--fit", "a100"}).out, HasSubstr("a100-sxm-80gb lacks the instructions of Hopper"));
  const auto json = nlohmann::json::parse(Ask({"plan", recipe_, "--fit", "h100", "--format", "json"}).out);
  EXPECT_LE(json["fit"]["fastest"]["time"]["step_seconds"], json["fit"]["now"]["time"]["step_seconds"]);
  EXPECT_EQ(json["time"], json["fit"]["now"]["time"]);
}

TEST_F(Decide, FitGivesHoursDollarsAndMicrobatches) {
  const Finished whole = Ask({"plan", recipe_, "--fit", "h100", "--price", "2.5", "--grow-batch"});
  EXPECT_THAT(
      whole.out,
      AllOf(ContainsRegex("\nthe run: [0-9,]+ steps? in [0-9.]+ [a-z]+ on 1 GPU, [0-9.]+ GPU-hours, [$][0-9.]+,"),
            HasSubstr("\nlarger microbatches, up to the first that does not fit\n"), HasSubstr("tokens/s"),
            HasSubstr("batch.micro=")));
  EXPECT_THAT(Ask({"plan", recipe_, "--explain", "--set", "run.device=cuda"}).out, HasSubstr(" by the estimate; "));
  const Finished plain = Ask({"plan", recipe_, "--fit", "h100"});
  EXPECT_THAT(plain.out, AllOf(HasSubstr(" GPU-hours, without saves, whose bandwidth is unknown\n"),
                               Not(HasSubstr("$")), Not(HasSubstr("larger microbatches"))));
  EXPECT_THAT(Ask({"plan", recipe_, "--price", "2"}).err, HasSubstr("--price needs --fit MEMORY|MACHINE"));
  EXPECT_THAT(Ask({"plan", recipe_, "--grow-batch"}).err, HasSubstr("--grow-batch needs --fit MEMORY|MACHINE"));
  for (const char* wrong : {"dear", "-1", "nan", "2USD"}) {
    EXPECT_THAT(Ask({"plan", recipe_, "--fit", "h100", fmt::format("--price={}", wrong)}).err,
                HasSubstr(fmt::format("--price: `{}` is no number of dollars", wrong)));
  }
}

TEST_F(Decide, FitOfAPlanFileHasNoKeysToChange) {
  const std::string plan = folder_ / "a.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}).exit_code, 0);
  const Finished fits = Ask({"plan", plan, "--fit", "80GiB"});
  EXPECT_EQ(fits.exit_code, 0) << fits.err;
  EXPECT_THAT(fits.out, HasSubstr("a plan file cannot change"));
  EXPECT_EQ(Ask({"plan", plan, "--fit", "1B"}).exit_code, 4);
}

TEST_F(Decide, OneRankWaitsForNoOther) {
  const std::vector<std::string> one{"plan", recipe_, "--explain", "--fit", "h100"};
  EXPECT_THAT(Ask(one).out, AllOf(HasSubstr("  waits between streams "), Not(HasSubstr("communication not hidden"))));
  std::vector<std::string> two = one;
  two.insert(two.end(), {"--set", "mesh.dp=2"});
  EXPECT_THAT(Ask(two).out, HasSubstr("  communication not hidden "));
}

TEST_F(Decide, FitIsAPartOfTheReport) {
  const Finished report = Ask({"plan", recipe_, "--explain", "--fit", "80GiB"});
  EXPECT_THAT(report.out, AllOf(StartsWith("plan "), HasSubstr("\nfits: each rank takes ")));
  const auto json = nlohmann::json::parse(Ask({"plan", recipe_, "--fit", "80GiB", "--format", "json"}).out);
  EXPECT_EQ(json["fit"]["fits"], true);
  EXPECT_EQ(json["fit"]["now"]["peak_bytes"], json["memory"]["peak_bytes"]);
  EXPECT_EQ(json["fit"]["cheapest"]["fits"], true);
  EXPECT_EQ(json["fit"]["least_ranks"]["ranks"], 1);
}

TEST_F(Decide, ThePageHoldsWhatFormatJsonPrints) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--fit", "80GiB"}}) {
    std::vector<std::string> command{"plan", recipe_, "--explain", "--format=json"};
    command.insert(command.end(), more.begin(), more.end());
    const std::string json = Ask(command).out;
    command[3] = "--format=html";
    const std::string page = Ask(command).out;
    EXPECT_THAT(page, StartsWith("<!DOCTYPE html>"));
    const std::string begin = "id=\"report\">";
    const size_t from = page.find(begin) + begin.size();
    EXPECT_EQ(page.substr(from, page.find("</script", from) - from), json);
  }
  const Finished written = Ask({"plan", recipe_, "--format", "html", "-o", folder_ / "a.html"});
  EXPECT_EQ(written.exit_code, 0) << written.err;
  EXPECT_THAT(ReadText(folder_ / "a.html"), StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(Ask({"plan", recipe_, "--format", "html", "--emit=json"}).exit_code, 2);
}

TEST_F(Decide, DiffEndsWith0OfTheSameAnd10OfOthers) {
  EXPECT_EQ(Ask({"diff", recipe_, recipe_}).exit_code, 0);
  const std::string commented = WriteIn(folder_, "commented.toml", "# other text, same recipe\n" + SoundRecipe());
  EXPECT_EQ(Ask({"diff", recipe_, commented, "--set", "start.run_id=a"}).exit_code, 0);
  const Finished differs = Ask({"diff", recipe_, "--set", "recompute.policy=full"});
  EXPECT_EQ(differs.exit_code, 10);
  EXPECT_THAT(differs.out, HasSubstr("recompute.policy  \"none\" -> \"full\""));
  const auto json =
      nlohmann::json::parse(Ask({"diff", recipe_, "--set", "recompute.policy=full", "--format=json"}).out);
  EXPECT_EQ(json["same"], false);
  EXPECT_EQ(json["keys"][0]["key"], "recompute.policy");

  const std::string plan = folder_ / "a.plan";
  ASSERT_EQ(Ask({"plan", recipe_, "-o", plan}).exit_code, 0);
  EXPECT_EQ(Ask({"diff", recipe_, plan}).exit_code, 0) << Ask({"diff", recipe_, plan}).out;
  EXPECT_EQ(Ask({"diff", plan, recipe_, "--set", "loss.chunks=2"}).exit_code, 10);
}

TEST_F(Decide, DiffOfACopyTellsTheRunId) {
  const std::string copy = WriteIn(folder_, "copy.toml", SoundRecipe());
  const Finished differs = Ask({"diff", recipe_, copy});
  EXPECT_EQ(differs.exit_code, 10);
  EXPECT_THAT(differs.out, AllOf(StartsWith("keys\n  start.run_id  \"a\" -> \"copy\"\nplan: "),
                                 HasSubstr("\nno figure of memory, communication or FLOPs differs\n")));
}

TEST_F(Decide, DiffOfWhatIsNoneSaysSo) {
  EXPECT_EQ(Ask({"diff"}).exit_code, 2);
  EXPECT_EQ(Ask({"diff", recipe_}).exit_code, 2);
  EXPECT_EQ(Ask({"diff", recipe_, folder_ / "missing.toml"}).exit_code, 2);
  EXPECT_EQ(Ask({"diff", recipe_, WriteIn(folder_, "b.toml", "[model]\nlayers = 0\n")}).exit_code, 3);
}

}  // namespace
}  // namespace shardc
