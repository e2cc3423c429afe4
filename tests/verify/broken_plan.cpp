#include "tests/verify/broken_plan.h"

#include <array>
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
auto Judge(const Plan& plan, const BrokenPlan& broken) -> std::vector<std::string> {
  return broken.op.empty() && broken.after.empty() ? VerifyRunnable(plan) : VerifyPlan(plan);
}

/// The plan of one op: its operands are filled, it runs, and all is released.
auto PlanOfOp(const std::string& words) -> ErrorOr<Plan> {
  std::string tables = "plan version=2 mesh=1 device=cpu kernels=fused\npasses place schedule\n";
  std::string values;
  std::string op = "  compute";
  std::string releases;
  std::map<std::string, std::string> types;
  for (const std::string& word : PlanLines::SplitWords(words)) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const std::string is = equals == std::string::npos ? "" : word.substr(equals + 1);
    const auto lower = types.find(is);
    const bool is_operand = is.ends_with(']') || lower != types.end();
    op += fmt::format(" {}", is_operand ? fmt::format("{0}={0}", name) : word);
    if (lower != types.end()) {
      values += fmt::format("value {} = ${}[0] {}\n", name, is, lower->second);
    } else if (is_operand) {
      types[name] = is;
      tables += fmt::format("buffer ${} transient bytes=4096 category=activations\n", name);
      values += fmt::format("value {0} = ${0}[0] {1}\n", name, is);
      releases += fmt::format("  compute release buffer=${}\n", name);
    }
  }
  const auto text = [&](const std::string& fills) {
    return tables + values + "section step {\n" + fills + op + "\n" + releases + "}\n";
  };
  const auto plan = ParsePlan(text(""));
  if (!plan.ok()) {
    return plan.error();
  }
  std::string fills;
  for (const Access& access : AccessesOf(plan->section(SectionKind::Step).ops[0].body)) {
    if (access.kind != AccessKind::Write) {
      fills += fmt::format("  compute fill out={} value=0\n", plan->values[access.value].name);
    }
  }
  return ParsePlan(text(fills));
}

/// Each sample is compiled once.
auto SampleOf(const BrokenPlan& broken) -> const Sample& {
  static std::map<std::array<std::string, 3>, Sample> samples;
  const std::array key{broken.plan, broken.op, broken.after};
  if (const auto found = samples.find(key); found != samples.end()) {
    return found->second;
  }
  constexpr std::string_view SourceDir = "SOURCE_DIR";
  std::vector<std::string> sets;
  for (std::string& set : PlanLines::SplitWords(broken.plan)) {
    if (const size_t at = set.find(SourceDir); at != std::string::npos) {
      set.replace(at, SourceDir.size(), SHARDC_SOURCE_DIR);
    }
    // `--unset=section.key` takes out a key of the sample.
    sets.push_back(set.starts_with("--unset=") ? set.replace(7, 1, " ") : set);
  }
  const auto after = FromText<PassKind>(broken.after);
  if (!broken.after.empty() && !after) {
    return samples.emplace(key, Sample{"no pass " + broken.after, PlanLines(Plan())}).first->second;
  }
  const ErrorOr<Plan> plan = broken.op.empty() ? CompileSample(sets, after) : PlanOfOp(broken.op);
  if (!plan.ok()) {
    return samples.emplace(key, Sample{plan.error().message, PlanLines(Plan())}).first->second;
  }
  const std::vector<std::string> findings = Judge(*plan, broken);
  return samples.emplace(key, Sample{findings.empty() ? "" : findings[0], PlanLines(*plan)}).first->second;
}

}  // namespace

auto ReadBrokenPlans(const std::filesystem::path& path, std::vector<std::string>& errors) -> std::vector<BrokenPlan> {
  std::vector<BrokenPlan> cases;
  std::ifstream file(path);
  std::string line;
  std::string plan;
  std::string op;
  bool open = false;
  for (int number = 1; std::getline(file, line); ++number) {
    const std::string place = fmt::format("{}:{}", path.filename().string(), number);
    const size_t colon = line.find(": ");
    const std::string key = line.substr(0, std::min(colon, line.size()));
    const std::string text = colon == std::string::npos ? "" : line.substr(colon + 2);
    if (line.empty() || line.starts_with('#')) {
      open = open && !line.empty();
    } else if (key == "case" && !text.empty() && !open) {
      cases.push_back({.place = place, .what = text, .plan = plan, .op = op, .after = {}, .changes = {}, .expect = {}});
      open = true;
    } else if (key == "op" && !open && !text.empty()) {
      op = text;
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
  return plan.ok() ? BrokenPlanResult{"", Judge(*plan, broken)} : BrokenPlanResult{plan.error().message, {}};
}

auto LabelOf(const std::string& finding) -> std::string {
  const size_t begin = finding.rfind('[');
  return begin == std::string::npos || !finding.ends_with(']') ? ""
                                                               : finding.substr(begin + 1, finding.size() - begin - 2);
}

}  // namespace shardc
