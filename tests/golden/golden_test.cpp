// Every case's files, compared whole. `tools/dev goldens --update` rewrites them.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "compiler/report/report.h"
#include "tests/golden/golden_case.h"
#include "tests/golden/without_scratch.h"
#include "tests/support/recorded.h"
#include "tests/support/repository.h"
#include "tests/support/text_lines.h"
#include "tests/support/unified_diff.h"

namespace shardc {
namespace {

/// Past this many lines nobody reads a golden: a section of it will do.
constexpr size_t MaxGoldenLines = 800;

class Golden : public testing::TestWithParam<GoldenCase> {};

TEST_P(Golden, IsAsRecorded) {
  const GoldenCase& golden = GetParam();
  const std::string update = fmt::format("tools/dev goldens --update {}", golden.name);
  ASSERT_EQ(golden.fault, "") << golden.recipe_path();
  const auto files = GoldenFilesOf(golden);
  ASSERT_TRUE(files.ok()) << files.error().message;
  for (const auto& [name, file] : *files) {
    const std::string path = golden.folder + "/" + name;
    EXPECT_LE(LinesOf(file.text).size(), MaxGoldenLines)
        << path << " is too long to read; record a section of the plan";
    ExpectRecorded(path, file.text, update, [&](const std::string& recorded) {
      // The plan that was recorded, where a difference gives it, beside the plan of this build.
      const auto plan = file.after.empty() ? std::nullopt : Patched(file.before, recorded);
      return plan && *plan != file.after ? UnifiedDiff(*plan, file.after, path, "what this build makes")
                                         : UnifiedDiff(recorded, file.text, path, "what this build makes");
    });
    if (!file.after.empty()) {
      EXPECT_LT(LinesOf(file.text).size(), LinesOf(file.after).size())
          << path << " is no shorter than the plan; take the line `# like` out of the recipe";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(GoldenCases()),
                         [](const auto& info) { return info.param.name; });

TEST(GoldenFiles, AreAllUsed) {
  std::set<std::string> known;
  std::set<std::string> folders;
  for (const GoldenCase& golden : GoldenCases()) {
    known.insert(golden.recipe_path());
    folders.insert(golden.folder);
    for (const std::string& what : golden.emit) {
      const std::string extension = what == "explain-json"                   ? "explain.json"
                                    : what == "plan" && !golden.like.empty() ? "plan.diff"
                                                                             : what;
      known.insert(fmt::format("{}/{}.{}", golden.folder, golden.stem, extension));
    }
    if (golden.pass) {
      known.insert(fmt::format("{}/{}.diff", golden.folder, golden.stem));
    }
  }
  const std::filesystem::path root = SHARDC_SOURCE_DIR;
  std::vector<std::string> tops(PlanCaseFolders.begin(), PlanCaseFolders.end());
  tops.push_back("tests/passes");
  for (const std::string& top : tops) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / top)) {
      const std::string path = entry.path().lexically_relative(root).string();
      const std::string extension = entry.path().extension().string();
      if (entry.is_directory()) {
        EXPECT_TRUE(folders.contains(path)) << path << " is the folder of no pass with cases";
      } else if (extension != ".cpp" && extension != ".h") {
        EXPECT_TRUE(known.contains(path)) << path << " belongs to no case: delete it";
      }
    }
  }
}

TEST(GoldenFiles, LikeNamesComparablePlan) {
  const std::vector<GoldenCase> cases = GoldenCases();
  GoldenCase golden = *std::ranges::find(cases, "plan_reshard_never", &GoldenCase::name);
  const std::map<std::string, std::string> reasons{
      {"reshard_nevr.toml", "there is no such case in the folder"},
      {"whole_plan.toml", "its plan is of another section, or after another pass"},
      {"prefetch.toml", "it records no plan"},
      {"reshard_never_by_override.toml", "it records no plan"},
      {"reshard_never.toml", "the plans are equal"},
  };
  for (const auto& [like, reason] : reasons) {
    golden.like = like;
    const auto files = GoldenFilesOf(golden);
    ASSERT_FALSE(files.ok()) << like;
    EXPECT_EQ(files.error().message, fmt::format("tests/plan/reshard_never.toml: `# like: {}`: {}", like, reason));
  }
}

TEST(GoldenFiles, ExplainNamesPartsOfReport) {
  const std::vector<GoldenCase> cases = GoldenCases();
  GoldenCase golden = *std::ranges::find(cases, "plan_one_rank", &GoldenCase::name);
  golden.report_parts = {"mesh", "loss", "peaks of", "init"};
  const auto files = GoldenFilesOf(golden);
  ASSERT_TRUE(files.ok()) << files.error().message;
  const std::string& report = files->at("one_rank.explain").text;
  EXPECT_TRUE(report.starts_with("mesh        1 rank\nloss        logits in one chunk")) << report;
  EXPECT_NE(report.find("\n\n  peaks of the other sections:\n    save "), std::string::npos) << report;
  EXPECT_NE(report.find("\n\ninit, seed 0\n  normal(0, 0.02) "), std::string::npos) << report;
  EXPECT_EQ(report.find("reserved"), std::string::npos) << report;

  golden.report_parts = {"mesh", "gathers"};
  const auto refused = GoldenFilesOf(golden);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "tests/plan/one_rank.toml: `# explain:`: no part of the report begins with `gathers`");
}

TEST(GoldenFiles, RecipesRepeatNothingOfTheirBases) {
  std::set<std::string> bases;
  for (const GoldenCase& golden : GoldenCases()) {
    const auto repeated = FindRepeated(RepositoryPath(golden.folder), ReadRepositoryFile(golden.recipe_path()));
    ASSERT_TRUE(repeated.ok()) << golden.recipe_path() << ": " << repeated.error().message;
    EXPECT_EQ(*repeated, "") << golden.recipe_path() << " gives this key the value that its base gives it";
    bases.insert(golden.recipe.base);
  }
  for (const auto& entry : std::filesystem::directory_iterator(RepositoryPath("tests/support/bases"))) {
    EXPECT_TRUE(bases.contains(entry.path().filename().string())) << entry.path() << " is no recipe's base: delete it";
  }
}

/// What kernels choose, of a few recipes whose ops are of all kinds and sizes: one file for all.
TEST(GoldenFiles, ScratchIsAsRecorded) {
  std::set<std::string> lines;
  for (const char* recipe :
       {"recipes/quickstart.toml", "recipes/quickstart_sgd.toml", "recipes/published/llama3_8b.toml",
        "tests/plan/bf16.toml", "tests/plan/tp_dp_tied.toml", "tests/plan/three_ranks_odd_sizes.toml"}) {
    const auto plan = CompileRecipeFile(recipe);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    for (std::string& line : ScratchLines(*plan)) {
      lines.insert(std::move(line));
    }
  }
  ExpectRecorded("tests/golden/scratch.txt", fmt::format("{}\n", fmt::join(lines, "\n")), "tools/dev goldens --update");
}

/// Kernels that ask for other scratch change nothing else that is recorded.
TEST(GoldenFiles, ScratchChangesNoPlan) {
  const PrintOptions print{.recipe = false};
  for (const char* recipe : {"tests/plan/whole_plan.toml", "tests/plan/tp_two_ranks.toml"}) {
    auto plan = CompileRecipeFile(recipe);
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    const std::string before = PrintWithoutScratch(*plan, print);
    const auto report_of_plan = [&] {
      const Plan shown = WithoutScratch(*plan);
      Report report = Explain(shown);
      report.plan_hash = "";
      return RenderReportText(report);
    };
    const std::string report = report_of_plan();
    EXPECT_NE(before.find("buffer $logits "), std::string::npos);
    EXPECT_EQ(before.find("scratch"), std::string::npos);
    int changed = 0;
    for (Value& value : plan->values) {
      if (value.name.ends_with(".scratch")) {
        value.shape[0] += 4096;
        plan->buffers[value.buffer].bytes += Bytes{16384};
        ++changed;
      }
    }
    EXPECT_GT(changed, 10);
    EXPECT_NE(PrintPlan(*plan, print), PrintPlan(*CompileRecipeFile(recipe), print));
    EXPECT_EQ(PrintWithoutScratch(*plan, print), before);
    EXPECT_EQ(report_of_plan(), report);
  }
}

TEST(GoldenFiles, EveryPassHasACase) {
  const std::vector<GoldenCase> cases = GoldenCases();
  for (const PassRow& row : PassRows()) {
    EXPECT_TRUE(
        std::any_of(cases.begin(), cases.end(), [&](const GoldenCase& golden) { return golden.pass == row.kind; }))
        << "pass " << row.name << " has no case: add tests/passes/" << row.name << "/NAME.toml";
  }
}

}  // namespace
}  // namespace shardc
