#include "tests/golden/golden_case.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "compiler/base/text/split.h"
#include "compiler/check/check_recipe.h"
#include "compiler/report/init_table.h"
#include "compiler/report/report.h"
#include "tests/golden/without_scratch.h"
#include "tests/support/repository.h"
#include "tests/support/text_lines.h"
#include "tests/support/unified_diff.h"

namespace shardc {

constexpr std::string_view JsonLine = "# json: ";
/// Unchanged lines around each change of a recorded difference.
constexpr size_t Context = 1;

/// One word of the `# run:` line. Returns false where it means nothing.
static auto TakeOption(GoldenCase& golden, std::string_view word) -> bool {
  const size_t equals = std::min(word.find('='), word.size());
  const std::string_view option = word.substr(0, equals);
  const std::string value(word.substr(std::min(equals + 1, word.size())));
  if (option == "--emit" && !golden.pass) {
    std::istringstream list(value);
    for (std::string item; std::getline(list, item, ',');) {
      if (item != "plan" && item != "explain" && item != "explain-json") {
        return false;
      }
      golden.emit.push_back(item);
    }
    return true;
  }
  if (word == "--print-init" && !golden.pass) {
    golden.emit.emplace_back("init");
    return true;
  }
  if (option == "--stop-after" && !golden.pass) {
    golden.stop_after = FromText<PassKind>(value);
    return golden.stop_after.has_value();
  }
  if (option == "--section") {
    golden.section = FromText<SectionKind>(value);
    return golden.section.has_value();
  }
  return false;
}

static auto ParseRunLine(GoldenCase& golden, const std::string& line) -> void {
  std::istringstream words(line);
  std::string word;
  words >> word >> word >> word;
  if (word != (golden.pass ? "pass" : "plan")) {
    golden.fault = fmt::format("`{}` does not run `{}`", line, golden.pass ? "pass" : "plan");
  }
  while (words >> word) {
    if (word == "--set" && words >> word) {
      golden.overrides.push_back(word);
    } else if (!TakeOption(golden, word)) {
      golden.fault = fmt::format("`{}` of `{}` is not known", word, line);
    }
  }
}

static auto ReadCase(const std::string& folder, const std::string& stem, std::optional<PassKind> pass) -> GoldenCase {
  GoldenCase golden;
  golden.folder = folder;
  golden.stem = stem;
  golden.pass = pass;
  golden.name = fmt::format("{}_{}", std::filesystem::path(folder).filename().string(), stem);
  const std::string text = ReadRepositoryFile(golden.recipe_path());
  golden.fault = "no `# run:` line";
  constexpr std::string_view same_plan_as = "# same-plan-as: ";
  constexpr std::string_view like = "# like: ";
  constexpr std::string_view explain = "# explain: ";
  for (const std::string& line : LinesOf(text)) {
    if (line.starts_with("# run: ")) {
      golden.fault = "";
      ParseRunLine(golden, line);
    } else if (line.starts_with(same_plan_as)) {
      golden.same_plan_as = line.substr(same_plan_as.size());
    } else if (line.starts_with(like)) {
      golden.like = line.substr(like.size());
    } else if (line.starts_with(explain)) {
      const auto parts = SplitAt(std::string_view(line).substr(explain.size()), ", ");
      golden.report_parts.assign(parts.begin(), parts.end());
    } else if (line.starts_with("# json") && !line.starts_with(JsonLine)) {
      golden.fault = fmt::format("`{}` does not begin as `{}`", line, JsonLine);
    }
  }
  if (!golden.report_parts.empty() && std::ranges::find(golden.emit, "explain") == golden.emit.end()) {
    golden.fault = "`# explain:` without --emit=explain";
  }
  if (auto whole = PutOverBase(RepositoryPath(folder), text)) {
    golden.recipe = *std::move(whole);
  } else {
    golden.fault = whole.error().message;
  }
  return golden;
}

static auto AddCasesOf(const std::string& folder, std::optional<PassKind> pass, std::vector<GoldenCase>& cases)
    -> void {
  const std::string path = RepositoryPath(folder);
  if (!std::filesystem::is_directory(path)) {
    return;
  }
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    if (entry.path().extension() == ".toml") {
      cases.push_back(ReadCase(folder, entry.path().stem().string(), pass));
    }
  }
}

auto GoldenCases() -> std::vector<GoldenCase> {
  std::vector<GoldenCase> cases;
  for (const std::string_view folder : PlanCaseFolders) {
    AddCasesOf(std::string(folder), std::nullopt, cases);
  }
  for (const PassRow& row : PassRows()) {
    AddCasesOf(fmt::format("tests/passes/{}", row.name), row.kind, cases);
  }
  std::sort(cases.begin(), cases.end(), [](const GoldenCase& a, const GoldenCase& b) { return a.name < b.name; });
  return cases;
}

auto ReadRecipeFile(const std::string& path) -> std::string {
  return PutOverBase(std::filesystem::path(RepositoryPath(path)).parent_path().string(), ReadRepositoryFile(path))
      .value()
      .text;
}

auto CompileRecipeFile(const std::string& path, const std::vector<std::string>& overrides) -> ErrorOr<Plan> {
  return CompileText(path, ReadRecipeFile(path), overrides);
}

auto CompileText(const std::string& path, const std::string& text, const std::vector<std::string>& overrides,
                 const AfterPass& after_pass) -> ErrorOr<Plan> {
  // What a case names lies in the repository.
  std::filesystem::current_path(RepositoryPath(""));
  SourceSet sources;
  Diagnostics diagnostics(&sources);
  const auto recipe = ReadRecipe(path, text, overrides, sources, diagnostics);
  if (recipe) {
    CheckRecipe(*recipe, diagnostics);
  }
  if (diagnostics.has_errors()) {
    return Error{ExitCode::RecipeRejected, RenderText(diagnostics, {})};
  }
  PipelineOptions options;
  options.after_pass = after_pass;
  auto plan = Compile(*recipe, options, diagnostics);
  if (!plan) {
    return Error{plan.error().code, plan.error().message + RenderText(diagnostics, {})};
  }
  return plan;
}

/// Returns the plan with each origin at the line of the file that has it: the recipe, or its base.
static auto WithLinesOfFiles(const WholeRecipe& recipe, Plan plan) -> Plan {
  const auto move = [&](Origin& origin) { origin.line = recipe.SourceOf(origin.line).line; };
  for (Parameter& parameter : plan.parameters) {
    move(parameter.init_origin);
  }
  for (Unit& unit : plan.units) {
    move(unit.origin);
  }
  for (Section& section : plan.sections) {
    for (Op& op : section.ops) {
      move(op.origin);
    }
  }
  return plan;
}

/// What is published is as anybody sees it; but no report tells the hash, in which all of a plan is.
static auto ReportOf(const GoldenCase& golden, const Plan& plan, std::string (*render)(const Report&)) -> std::string {
  const Plan shown = golden.folder == PublishedFolder ? plan : WithoutScratch(plan);
  Report report = Explain(shown);
  report.plan_hash = "(left out)";
  return render(report);
}

/// Returns the parts of a report that begin as the case asks. Errors: the report has no such part.
static auto TakeParts(const GoldenCase& golden, const std::string& report) -> ErrorOr<std::string> {
  std::string text;
  std::set<std::string> missing(golden.report_parts.begin(), golden.report_parts.end());
  bool is_taken = false;
  bool is_after_empty_line = false;
  for (const std::string& line : LinesOf(report)) {
    const size_t indentation = std::min(line.find_first_not_of(' '), line.size());
    if (line.empty()) {
      is_after_empty_line = true;
      continue;
    }
    if (indentation == 0 || (indentation == 2 && line.ends_with(':'))) {
      is_taken = false;
      for (const std::string& begin : golden.report_parts) {
        if (line.substr(indentation).starts_with(begin)) {
          is_taken = true;
          missing.erase(begin);
        }
      }
    }
    if (is_taken) {
      text += (is_after_empty_line && !text.empty() ? "\n" : "") + line + "\n";
      is_after_empty_line = false;
    }
  }
  if (!missing.empty()) {
    return Error{ExitCode::Usage, fmt::format("{}: `# explain:`: no part of the report begins with `{}`",
                                              golden.recipe_path(), *missing.begin())};
  }
  return text;
}

/// Returns the text of a recipe with the values that its `json` lines have in the report. Errors: the report lacks one.
static auto WithValuesOf(const std::string& json_report, const std::string& recipe) -> ErrorOr<std::string> {
  const auto report = nlohmann::ordered_json::parse(json_report);
  std::string text;
  for (std::string& line : LinesOf(recipe)) {
    if (line.starts_with(JsonLine)) {
      const std::string path = line.substr(JsonLine.size(), line.find(" = ") - JsonLine.size());
      const bool is_path = path.starts_with('/');
      if (!is_path || !report.contains(nlohmann::ordered_json::json_pointer(path))) {
        return Error{ExitCode::Usage, fmt::format("`{}`: the report has no {}", line, path)};
      }
      line = fmt::format("{}{} = {}", JsonLine, path, report[nlohmann::ordered_json::json_pointer(path)].dump());
    }
    text += line + "\n";
  }
  return text;
}

/// Returns the files of a case as if it were like no other.
static auto WholeFilesOf(const GoldenCase& golden) -> ErrorOr<std::map<std::string, GoldenFile>> {
  const auto print = [&](const Plan& plan) {
    return PrintWithoutScratch(WithLinesOfFiles(golden.recipe, plan), {.section = golden.section, .recipe = false});
  };
  std::map<std::string, GoldenFile> files;
  std::string plan_text;
  // An empty plan before the first pass.
  std::string before = golden.pass ? print(Plan{}) : "";
  auto compiled =
      CompileText(golden.recipe_path(), golden.recipe.text, golden.overrides, [&](PassKind pass, const Plan& now) {
        if (golden.pass && static_cast<int>(pass) + 1 == static_cast<int>(*golden.pass)) {
          before = print(now);
        } else if (golden.pass == pass) {
          files[golden.stem + ".diff"] = {
              UnifiedDiff(before, print(now), "before", fmt::format("after {}", ToText(pass)), Context)};
        } else if (golden.stop_after == pass) {
          plan_text = print(now);
        }
      });
  if (!compiled) {
    return compiled.error();
  }
  const Plan plan = WithLinesOfFiles(golden.recipe, *compiled);
  for (const std::string& what : golden.emit) {
    if (what == "plan") {
      files[golden.stem + ".plan"] = {golden.stop_after ? plan_text : print(*compiled)};
    } else if (what == "explain") {
      std::string report = ReportOf(golden, plan, RenderReportText);
      if (!golden.report_parts.empty()) {
        auto parts = TakeParts(golden, report);
        RETURN_IF_ERROR(parts);
        report = *std::move(parts);
      }
      files[golden.stem + ".explain"] = {report};
    } else if (what == "init") {
      files[golden.stem + ".init"] = {RenderInitText(plan)};
    } else {
      files[golden.stem + ".explain.json"] = {ReportOf(golden, plan, RenderReportJson)};
    }
  }
  if (const std::string recipe = ReadRepositoryFile(golden.recipe_path()); recipe.find(JsonLine) != std::string::npos) {
    auto text = WithValuesOf(ReportOf(golden, plan, RenderReportJson), recipe);
    RETURN_IF_ERROR(text);
    files[golden.stem + ".toml"] = {*std::move(text)};
  }
  return files;
}

/// Puts the difference from the plan of the case that this one is like in the place of the plan. Errors: there is no
/// such case, or its plan is another part of a plan.
static auto PutDifference(const GoldenCase& golden, std::map<std::string, GoldenFile>& files) -> Status {
  const auto refuse = [&](const std::string& reason) {
    return Error{ExitCode::Usage, fmt::format("{}: `# like: {}`: {}", golden.recipe_path(), golden.like, reason)};
  };
  const std::filesystem::path path = std::filesystem::path(golden.folder) / golden.like;
  if (!std::filesystem::exists(RepositoryPath(path.string()))) {
    return refuse("there is no such case in the folder");
  }
  const GoldenCase other = ReadCase(golden.folder, path.stem().string(), golden.pass);
  const std::string name = golden.stem + ".plan";
  const std::string other_name = other.stem + ".plan";
  auto other_files = WholeFilesOf(other);
  RETURN_IF_ERROR(other_files);
  if (!files.contains(name) || !other_files->contains(other_name)) {
    return refuse(files.contains(name) ? "it records no plan" : "this case records no plan");
  }
  if (other.section != golden.section || other.stop_after != golden.stop_after) {
    return refuse("its plan is of another section, or after another pass");
  }
  const std::string before = std::move(other_files->at(other_name).text);
  const std::string after = std::move(files.extract(name).mapped().text);
  if (before == after) {
    return refuse("the plans are equal");
  }
  files[name + ".diff"] = {UnifiedDiff(before, after, other_name, name, Context), before, after};
  return Success{};
}

auto GoldenFilesOf(const GoldenCase& golden) -> ErrorOr<std::map<std::string, GoldenFile>> {
  auto files = WholeFilesOf(golden);
  if (files && !golden.like.empty()) {
    RETURN_IF_ERROR(PutDifference(golden, *files));
  }
  return files;
}

}  // namespace shardc
