// Reads, checks and compiles a recipe; each stage runs only if the one before found no error.

#include "compiler/driver/recipe_source.h"

#include <algorithm>
#include <cstdio>

#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/diag/render_order.h"
#include "compiler/driver/output.h"
#include "compiler/passes/check_names.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/key_rows.h"
#include "compiler/recipe/presets.h"
#include "compiler/verify/read_plan.h"

namespace shardc {

auto DeclareRecipeOptions(CommandOptions& options, RecipeOptions& values) -> void {
  options.Positional("RECIPE|PLAN", values.path, "a recipe (TOML) or a plan file");
  options.Repeated("--set", values.sets, "SECTION.KEY=VALUE",
                   "set a key to another value than the recipe does; repeatable");
  options.Flag("--strict", values.is_strict, "treat warnings as errors");
  options.Choice("--color", values.color, {"auto", "always", "never"}, "colour of messages");
}

RecipeSource::RecipeSource(const RecipeOptions& options, std::optional<std::string> text, LeftOut left_out)
    : options_(options),
      text_(std::move(text)),
      read_{.files = FileChecks::Judge, .left_out = left_out},
      diagnostics_(&sources_) {
  diagnostics_.set_strict(options.is_strict);
}

/// What tells at a glance that the text of a file is no recipe; empty where it may be one.
static auto WhyNoText(std::string_view path, std::string_view text) -> std::string {
  const bool is_utf16 = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) {
    // Perhaps a recipe of which nothing is written yet.
    return path.ends_with(".plan") || path.ends_with(".shardc") ? "it is empty" : "";
  }
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos && !is_utf16) {
    return fmt::format("it is no text, byte {} is NUL", nul);
  }
  return text[first] == '{' ? "it is JSON" : "";
}

/// True if a line begins as a table of a recipe does, or a key of one does: `[model]`, `[[init.rule]]`, `model.layers`,
/// `model = {`.
static auto NamesASection(std::string_view text) -> bool {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t first = std::min(line.find_first_not_of(" \t[\"'"), line.size());
    const bool is_header = line.substr(0, first).find('[') != std::string_view::npos;
    line.remove_prefix(first);
    const std::string_view word = line.substr(0, line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"));
    const std::string_view after = line.substr(word.size());
    const size_t sign = after.find_first_not_of(' ');
    const bool is_inline = sign != std::string_view::npos && after[sign] == '=' && after.find('{') != after.npos;
    if ((is_header || is_inline || after.starts_with('.')) &&
        std::ranges::any_of(RecipeSectionRows(), [&](const RecipeSectionRow& row) { return row.section == word; })) {
      return true;
    }
  }
  return false;
}

static auto IsSyntaxError(const Diagnostic& diagnostic) -> bool {
  return diagnostic.kind == DiagnosticKind::TomlSyntax && diagnostic.severity == Severity::Error;
}

static auto HasSyntaxError(const Diagnostics& diagnostics) -> bool {
  return std::ranges::any_of(diagnostics.all(), IsSyntaxError);
}

/// Requires: there is one.
static auto FirstSyntaxError(const Diagnostics& diagnostics) -> Diagnostic {
  return *std::ranges::find_if(diagnostics.all(), IsSyntaxError);
}

auto RecipeSource::Load() -> ErrorOr<Recipe> {
  // Enough to say how large a file is that is too large; not what /dev/zero holds.
  constexpr size_t read_limit = size_t{64} << 20;
  const Error rejected{ExitCode::RecipeRejected, ""};
  SetCheckContext(fmt::format("reading {}", options_.path));
  auto text = text_ ? ErrorOr<std::string>(*std::exchange(text_, std::nullopt)) : ReadFile(options_.path, read_limit);
  if (!text) {
    diagnostics_.Build({}, DiagnosticKind::FileUnreadable, options_.path, text.error().message).Emit();
    return Error{ExitCode::Usage, ""};
  }
  if (const std::string reason = WhyNoText(options_.path, *text); !reason.empty()) {
    diagnostics_.Build({}, DiagnosticKind::NeitherRecipeNorPlan, options_.path, reason).Emit();
    return rejected;
  }
  const bool names_a_section = NamesASection(*text);
  SetCheckContext(fmt::format("checking {}", options_.path));
  Diagnostics found(&sources_);
  found.set_strict(options_.is_strict);
  auto recipe = ReadAndCheck(options_.path, *std::move(text), options_.sets, sources_, found, read_);
  if (!names_a_section && HasSyntaxError(found)) {
    // All that is said of such a text as a recipe would be noise.
    diagnostics_
        .Build({}, DiagnosticKind::NeitherRecipeNorPlan, options_.path,
               "it is not TOML with a section such as [model], and does not begin with `plan version=`")
        .Emit();
    diagnostics_.Add(FirstSyntaxError(found));
    return rejected;
  }
  for (const Diagnostic& diagnostic : found.all()) {
    diagnostics_.Add(diagnostic);
  }
  diagnostics_.AddWaiting(found.num_waiting());
  if (!recipe) {
    return recipe.error();
  }
  assumed_ = AssumedLines(*recipe);
  if (scan_ && !diagnostics_.has_errors()) {
    ScanDataFiles(*recipe, diagnostics_, *scan_);
  }
  return diagnostics_.has_errors() ? rejected : std::move(recipe);
}

auto RecipeSource::LoadAndCompile(const PipelineOptions& options) -> ErrorOr<Plan> {
  const auto recipe = Load();
  if (!recipe) {
    return recipe.error();
  }
  auto plan = Compile(*recipe, options, diagnostics_);
  if (!plan && diagnostics_.has_errors()) {
    ReportNameFaults(*recipe, diagnostics_);
  }
  if (plan && diagnostics_.has_errors()) {
    return Error{ExitCode::RecipeRejected, ""};
  }
  return plan;
}

auto RecipeSource::ReadPlan(std::string_view text) -> ErrorOr<Plan> {
  SetCheckContext(fmt::format("reading {}", options_.path));
  std::vector<std::string> faults;
  auto plan = ReadRunnablePlan(options_.path, text, &faults);
  const int16_t source = faults.empty() ? int16_t{-1} : sources_.Add(options_.path, "");
  for (const std::string& fault : faults) {
    diagnostics_.Build({source, 0, 0, 1}, DiagnosticKind::PlanRejected, fault).Emit();
  }
  return plan;
}

auto RecipeSource::PrintDiagnostics() const -> void {
  const RenderOptions render{.color = UseColor(ColorChoiceFromText(options_.color))};
  std::string text = RenderText(diagnostics_, render);
  for (const std::string& line : assumed_) {
    text += fmt::format("{}: assumed {}\n", PrintableLine(options_.path), line);
  }
  std::fwrite(text.data(), 1, text.size(), stderr);
}

auto RecipeSource::FirstError() const -> std::string {
  for (const Diagnostic* diagnostic : InPlaceOrder(diagnostics_)) {
    if (diagnostic->severity == Severity::Error) {
      Diagnostics only(&sources_);
      only.Add(*diagnostic);
      std::string text = RenderText(only, {});
      text.pop_back();
      return text;
    }
  }
  return "";
}

auto ReadRecipeOrPlan(const std::string& path) -> NamedText {
  // One byte more than a plan may have; recipes have less.
  const auto text = ReadFile(path, MaxPlanBytes + 1);
  return text ? NamedText{.text = *text, .is_plan = IsPlanText(*text)} : NamedText{};
}

auto SetOption(const RecipeOptions& options) -> GivenOption { return {"--set", !options.sets.empty()}; }

auto RefuseRecipeOptions(const std::string& path, const std::vector<GivenOption>& options) -> Status {
  for (const GivenOption& option : options) {
    if (option.is_given) {
      return Fail(ExitCode::Usage, "{} acts on a recipe, and {} is a plan; make the plan again from its recipe",
                  option.name, path);
    }
  }
  return Success{};
}

}  // namespace shardc
