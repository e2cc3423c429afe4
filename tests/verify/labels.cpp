// Every label of the verifier and of the ops' constraints, by plans that are wrong in one thing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "compiler/verify/plan_rule_rows.h"
#include "tests/verify/broken_plan.h"
#include "tests/verify/coded_cases.h"

namespace shardc {
namespace {

namespace fs = std::filesystem;

auto CaseFiles() -> std::vector<fs::path> {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(SHARDC_SOURCE_DIR "/tests/verify/cases")) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The labels that the sources have.
auto LabelsOfSources() -> std::set<std::string> {
  std::set<std::string> labels;
  constexpr std::string_view Suffix = "\"_rule";
  for (const auto& entry : fs::recursive_directory_iterator(SHARDC_SOURCE_DIR "/compiler")) {
    std::ifstream file(entry.path());
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    for (size_t end = text.find(Suffix); end != std::string::npos; end = text.find(Suffix, end + 1)) {
      const size_t begin = text.rfind('"', end - 1) + 1;
      // Empty: the literal's own declaration.
      if (begin < end) {
        labels.insert(text.substr(begin, end - begin));
      }
    }
  }
  return labels;
}

/// Asks that all findings, and there are some, have this label.
auto ExpectAlone(const std::vector<std::string>& findings, const std::string& label) -> bool {
  const bool alone = !findings.empty() && std::all_of(findings.begin(), findings.end(),
                                                      [&](const auto& finding) { return LabelOf(finding) == label; });
  EXPECT_TRUE(alone) << "expected [" << label << "] alone, found:\n" << fmt::format("{}", fmt::join(findings, "\n"));
  return alone;
}

TEST(BrokenPlans, EachHasItsLabelAloneAndEachLabelAPlan) {
  const std::set<std::string> labels = LabelsOfSources();
  EXPECT_GT(labels.size(), 150);
  std::set<std::string> produced;
  size_t num_cases = 0;
  for (const fs::path& path : CaseFiles()) {
    std::vector<std::string> errors;
    for (const BrokenPlan& broken : ReadBrokenPlans(path, errors)) {
      SCOPED_TRACE(fmt::format("{}: {}", broken.place, broken.what));
      EXPECT_TRUE(labels.contains(broken.expect)) << "no such label in the sources: " << broken.expect;
      ++num_cases;
      const BrokenPlanResult result = JudgeBrokenPlan(broken);
      EXPECT_EQ(result.error, "");
      if (result.error.empty() && ExpectAlone(result.findings, broken.expect)) {
        produced.insert(broken.expect);
      }
    }
    EXPECT_EQ(errors, std::vector<std::string>{});
  }
  std::vector<CodedCase> coded_cases = CodedCases();
  std::ranges::move(OneOpCases(), std::back_inserter(coded_cases));
  for (const CodedCase& coded : coded_cases) {
    SCOPED_TRACE(coded.what);
    EXPECT_TRUE(labels.contains(coded.label)) << "no such label in the sources: " << coded.label;
    if (ExpectAlone(coded.judge(), coded.label)) {
      produced.insert(coded.label);
    }
  }
  fmt::print("{} labels, {} cases as text and {} in code\n", labels.size(), num_cases, coded_cases.size());
  std::vector<std::string> left;
  std::set_difference(labels.begin(), labels.end(), produced.begin(), produced.end(), std::back_inserter(left));
  EXPECT_TRUE(left.empty()) << "labels that no case produces: " << fmt::format("{}", fmt::join(left, " "));
}

TEST(PlanRules, EachLabelHasHelpAndEachHelpALabel) {
  std::set<std::string> with_help;
  for (const PlanRuleRow& row : PlanRuleRows()) {
    EXPECT_TRUE(with_help.insert(std::string(row.label)).second) << row.label << " has two rows";
    EXPECT_TRUE(row.help.size() >= 10 && row.help.ends_with('.')) << row.label << ": " << row.help;
  }
  EXPECT_EQ(with_help, LabelsOfSources());
}

auto ErrorOf(std::vector<std::string> changes) -> std::string {
  return JudgeBrokenPlan({.place = {},
                          .what = {},
                          .plan = {},
                          .op = {},
                          .after = {},
                          .changes = std::move(changes),
                          .expect = "read-undefined"})
      .error;
}

TEST(BrokenPlans, AChangeOfWhatIsNotThereIsWrong) {
  const auto expect = [](const std::string& change, const std::string& error) {
    EXPECT_EQ(ErrorOf({change}), fmt::format("`{}`: {}", change, error));
  };
  expect("drop step swiglu layer=7", "no line `step swiglu layer=7`");
  expect("drop step swiglu #9", "no line `step swiglu #9`");
  expect("set step rope .table to shape=(step rope .nothing)", "a line `step` without `nothing`");
  expect("set step rope to head_dim=none head_dim=none", "no field `head_dim`");
  expect("set parameter nobody to trainable=true", "no line `parameter nobody`");
  expect("set step rope .phase to x=1", "no value is named `forward`");
  expect("set step rope to phase+=1", "`phase` is no number to change");
  expect("set step rope to x=(step rope .x", "a bracket is not closed");
  expect("set step rope to", "nothing is set");
  expect("mend step rope", "`mend` is no change");
  EXPECT_NE(ErrorOf({"set step rope to nothing=1"}).find("field `nothing` is unknown"), std::string::npos)
      << ErrorOf({"set step rope to nothing=1"});
}

TEST(BrokenPlans, ALineThatBelongsToNoCaseIsWrong) {
  const fs::path path = fs::temp_directory_path() / fmt::format("broken_plans_{}.txt", ::getpid());
  std::ofstream(path)
      << "change: drop step rope\n\ncase: one\nchange: drop step rope\n\ncase: two\nexpect: a\nexpect: b\n";
  std::vector<std::string> errors;
  EXPECT_EQ(ReadBrokenPlans(path, errors).size(), 2);
  fs::remove(path);
  const std::string name = path.filename().string();
  EXPECT_EQ(errors,
            (std::vector<std::string>{
                name + ":1: `change: drop step rope` belongs to no case", name + ":8: `expect: b` belongs to no case",
                name + ":3: a case without a change or a label", name + ":6: a case without a change or a label"}));
}

}  // namespace
}  // namespace shardc
