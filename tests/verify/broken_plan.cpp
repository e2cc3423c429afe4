#include "tests/verify/broken_plan.h"

#include <fstream>
#include <map>

#include "compiler/plan/text.h"
#include "tests/support/plan_lines.h"
#include "tests/support/plan_samples.h"

namespace shardc {

namespace {

struct Sample {
  std::string fault;
  PlanLines lines;
};

/// What may run is judged as a run judges it.
auto Judge(const Plan& plan, const std::string& after) -> std::vector<std::string> {
  return after.empty() ? VerifyRunnable(plan) : VerifyPlan(plan);
}

/// Each sample is compiled once.
auto SampleOf(const BrokenPlan& broken) -> const Sample& {
  static std::map<std::pair<std::string, std::string>, Sample> samples;
  const std::pair key{broken.plan, broken.after};
  if (const auto found = samples.find(key); found != samples.end()) {
    return found->second;
  }
  constexpr std::string_view SourceDir = "SOURCE_DIR";
  std::vector<std::string> sets;
  for (std::string& set : PlanLines::SplitWords(broken.plan)) {
    if (const size_t at = set.find(SourceDir); at != std::string::npos) {
      set.replace(at, SourceDir.size(), SHARDC_SOURCE_DIR);
    }
    sets.push_back(set);
  }
  const auto after = FromText<PassKind>(broken.after);
  if (!broken.after.empty() && !after) {
    return samples.emplace(key, Sample{"no pass " + broken.after, PlanLines(Plan())}).first->second;
  }
  const Plan plan = CompileSample(sets, after);
  const std::vector<std::string> findings = Judge(plan, broken.after);
  return samples.emplace(key, Sample{findings.empty() ? "" : findings[0], PlanLines(plan)}).first->second;
}

}  // namespace

auto ReadBrokenPlans(const std::filesystem::path& path, std::vector<std::string>& errors) -> std::vector<BrokenPlan> {
  std::vector<BrokenPlan> cases;
  std::ifstream file(path);
  std::string line;
  std::string plan;
  bool open = false;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string place = fmt::format("{}:{}", path.filename().string(), number);
    const size_t colon = line.find(": ");
    const std::string key = line.substr(0, std::min(colon, line.size()));
    const std::string text = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.empty() || line.starts_with('#')) {
      open = open && !line.empty();
    } else if (key == "case" && !text.empty() && !open) {
      cases.push_back({.place = place, .what = text, .plan = plan, .after = {}, .changes = {}, .expect = {}});
      open = true;
    } else if (key == "plan" && cases.empty()) {
      plan = text;
    } else if (key == "plan" && open && cases.back().plan == plan) {
      cases.back().plan = text;
    } else if (key == "change" && open && !text.empty()) {
      cases.back().changes.push_back(text);
    } else if (std::string* const field = !open             ? nullptr
                                          : key == "after"  ? &cases.back().after
                                          : key == "expect" ? &cases.back().expect
                                                            : nullptr;
               field != nullptr && field->empty() && !text.empty()) {
      *field = text;
    } else {
      errors.push_back(fmt::format("{}: `{}` belongs to no case", place, line));
    }
  }
  for (const BrokenPlan& broken : cases) {
    if (broken.changes.empty() || broken.expect.empty()) {
      errors.push_back(fmt::format("{}: a case without a change or a label", broken.place));
    }
  }
  return cases;
}

auto JudgeBrokenPlan(const BrokenPlan& broken) -> BrokenPlanResult {
  const Sample& sample = SampleOf(broken);
  if (!sample.fault.empty()) {
    return {"the plan is wrong before it is changed: " + sample.fault, {}};
  }
  PlanLines lines = sample.lines;
  for (const std::string& change : broken.changes) {
    if (const std::string wrong = lines.Change(change); !wrong.empty()) {
      return {fmt::format("`{}`: {}", change, wrong), {}};
    }
  }
  const auto plan = ParsePlan(lines.Text());
  return plan.ok() ? BrokenPlanResult{"", Judge(*plan, broken.after)} : BrokenPlanResult{plan.error().message, {}};
}

auto LabelOf(const std::string& finding) -> std::string {
  const size_t begin = finding.rfind('[');
  return begin == std::string::npos || !finding.ends_with(']') ? ""
                                                               : finding.substr(begin + 1, finding.size() - begin - 2);
}

}  // namespace shardc
