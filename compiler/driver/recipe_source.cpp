// Reads, checks and compiles a recipe; each stage runs only if the one before found no error.

#include "compiler/driver/recipe_source.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/base/mapped.h"
#include "compiler/base/printable.h"
#include "compiler/check/recipe_data.h"
#include "compiler/checkpoint/what_lies_there.h"
#include "compiler/cluster/place.h"
#include "compiler/data/replaced_input.h"
#include "compiler/diag/render_order.h"
#include "compiler/driver/bf16_base.h"
#include "compiler/driver/output.h"
#include "compiler/plan/attempts.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/override.h"
#include "compiler/recipe/presets.h"
#include "compiler/start/adapter_start.h"
#include "compiler/verify/read_plan.h"

namespace shardc {

auto DeclareRecipeOptions(CommandOptions& options, RecipeOptions& values, const std::string& name,
                          const std::string& doc) -> void {
  options.Positional(name, values.path, doc);
  DeclareOverrides(options, values);
  options.Flag("--strict", values.is_strict, "treat warnings as errors");
  options.Choice("--color", values.color, {"auto", "always", "never"}, "colour of messages");
}

auto DeclareOverrides(CommandOptions& options, RecipeOptions& values) -> void {
  options.Repeated("--set", values.sets, "SECTION.KEY=VALUE",
                   "set a key to another value than the recipe does; repeatable");
  options.Repeated("--unset", values.unsets, "SECTION.KEY",
                   "take a key or a list out, as if the recipe did not have it, before any --set; repeatable");
}

/// Returns the overrides as a recipe takes them.
static auto OverridesOf(const RecipeOptions& options) -> std::vector<std::string> {
  auto overrides =
      Mapped<std::string>(options.unsets, [](const std::string& key) { return fmt::format("{}{}", UnsetPrefix, key); });
  overrides.insert(overrides.end(), options.sets.begin(), options.sets.end());
  return overrides;
}

RecipeSource::RecipeSource(const RecipeOptions& options, std::optional<std::string> text, LeftOut left_out)
    : options_(options),
      text_(std::move(text)),
      read_{.files = FileChecks::Judge, .left_out = left_out, .resolved_from = options.resolved_from},
      diagnostics_(&sources_) {
  diagnostics_.set_strict(options.is_strict);
}

/// Returns what lies at a path that cannot be read, or near it, as the end of a sentence.
static auto NoteOn(const std::string& given) -> std::string {
  std::error_code unknown;
  const std::filesystem::path path(given);
  if (!std::filesystem::is_directory(path, unknown)) {
    return std::filesystem::exists(path, unknown) ? "" : NearestNote(given);
  }
  return std::filesystem::exists(path / AttemptsName, unknown)
             ? "; it is the directory of a run, which eval, logits, sample and export take; name a recipe"
         : std::filesystem::exists(path / ManifestName, unknown)
             ? "; it is a checkpoint; name its run, or a recipe and --checkpoint " + given
             : "; " + WhatLiesAt(given);
}

auto RecipeSource::Load() -> ErrorOr<Recipe> {
  // Enough to say how large a file is that is too large; not what /dev/zero holds.
  constexpr size_t read_limit = size_t{64} << 20;
  const Error rejected{ExitCode::RecipeRejected, ""};
  SetCheckContext(fmt::format("reading {}", options_.path));
  auto text = text_ ? ErrorOr<std::string>(*std::exchange(text_, std::nullopt)) : ReadFile(options_.path, read_limit);
  if (!text) {
    diagnostics_.Report({}, DiagnosticKind::FileUnreadable, options_.path,
                        text.error().message + NoteOn(options_.path));
    return Error{ExitCode::Usage, ""};
  }
  // A zero further down is a fault of a recipe, whose line is shown; a file of 64 MiB is too large whatever it has.
  // What begins with the mark of UTF-16 is told so.
  const bool is_marked = text->starts_with("\xff\xfe") || text->starts_with("\xfe\xff");
  if (const size_t zero = text->find('\0'); zero < text->find('\n') && text->size() < read_limit && !is_marked) {
    diagnostics_.Report({}, DiagnosticKind::FileUnreadable, options_.path,
                        fmt::format("byte {} is zero, so it is no text; name a recipe (TOML), and files of tokens by "
                                    "its key data.tokens",
                                    zero + 1));
    return rejected;
  }
  SetCheckContext(fmt::format("checking {}", options_.path));
  auto recipe = ReadAndCheck(options_.path, *std::move(text), OverridesOf(options_), sources_, diagnostics_, read_);
  if (!recipe) {
    AddBf16Base();
    return recipe.error();
  }
  assumed_ = AssumedLines(*recipe);
  if (scan_ && !diagnostics_.has_errors()) {
    ScanDataFiles(*recipe, diagnostics_, *scan_);
  }
  return diagnostics_.has_errors() ? rejected : std::move(recipe);
}

auto RecipeSource::LoadAndCompile(const PipelineOptions& options) -> ErrorOr<Plan> {
  ASSIGN_OR_RETURN(const auto recipe, Load());
  auto plan = Compile(recipe, options, diagnostics_);
  if (!plan) {
    AddBf16Base();
  }
  if (plan && diagnostics_.has_errors()) {
    return Error{ExitCode::RecipeRejected, ""};
  }
  return plan;
}

auto RecipeSource::AddBf16Base() -> void {
  for (const DiagnosticKind kind : {DiagnosticKind::FewerBits, DiagnosticKind::SeedFewerBits}) {
    if (std::ranges::find(diagnostics_.all(), kind, &Diagnostic::kind) == diagnostics_.all().end()) {
      continue;
    }
    if (const std::string takes = Bf16BaseText(options_.path, sources_[0].text, OverridesOf(options_));
        !takes.empty()) {
      diagnostics_.AddHelp(kind, takes);
    }
  }
}

auto RecipeSource::CompileChanged(const Recipe& recipe, const PipelineOptions& options) -> ErrorOr<Plan> {
  Diagnostics found(&sources_);
  CheckRecipe(recipe, found);
  auto plan = found.has_errors() ? ErrorOr<Plan>(Error{ExitCode::RecipeRejected, ""}) : Compile(recipe, options, found);
  // Those warnings that it shares with the recipe of Load are printed.
  Diagnostics errors(&sources_);
  for (const Diagnostic& diagnostic : found.all()) {
    if (diagnostic.severity == Severity::Error) {
      errors.Add(diagnostic);
    }
  }
  if (errors.has_errors()) {
    fmt::print(stderr, "{}", RenderText(errors, {.color = UseColor(ColorChoiceFromText(options_.color))}));
  }
  return plan;
}

auto RecipeSource::ReadPlan(std::string_view text) -> ErrorOr<Plan> {
  SetCheckContext(fmt::format("reading {}", options_.path));
  std::vector<std::string> faults;
  auto plan = ReadRunnablePlan(options_.path, text, &faults);
  const int16_t source = faults.empty() ? int16_t{-1} : sources_.Add(options_.path, "");
  for (const std::string& fault : faults) {
    diagnostics_.Report({source, 0, 0, 1}, DiagnosticKind::PlanRejected, fault);
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

auto RecipeSource::TakeHostsOfLaunch() -> void {
  if (const auto place = FindPlace(std::getenv); place && *place) {
    set_num_hosts((*place)->num_hosts());
  }
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

auto TakeRecipeOfRun(RecipeOptions& options, std::string& checkpoint) -> Status {
  std::error_code unknown;
  const std::filesystem::path attempts = std::filesystem::path(options.path) / AttemptsName;
  if (const std::string run = RunOfAttempt(options.path); checkpoint.empty() && !run.empty()) {
    return Fail(ExitCode::Usage, "{} is of the record of a launch; name its run, {}", options.path, run);
  }
  if (!std::filesystem::is_directory(attempts, unknown)) {
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto directory, OpenDirectory(PosixFs(), options.path));
  ASSIGN_OR_RETURN(const auto numbers, ListAttempts(directory));
  // A launch that was refused has a recipe on record that made nothing of what is there.
  std::optional<RecipeOptions> taken;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    const std::filesystem::path folder = attempts / AttemptName(*number);
    if (!std::filesystem::exists(folder / ResolvedRecipeName, unknown)) {
      continue;
    }
    ASSIGN_OR_RETURN(const auto text, ReadFile((folder / AttemptFileName).string(), MaxAttemptBytes));
    ASSIGN_OR_RETURN(const auto json, ParseJson(text, ExitCode::Environment));
    const JsonReader attempt(json, ExitCode::Environment);
    ASSIGN_OR_RETURN(const auto asked, attempt.Object("asked"));
    RecipeOptions found = options;
    ASSIGN_OR_RETURN(found.resolved_from, asked.String(asked.Has("recipe") ? "recipe" : "plan"));
    found.path = (folder / ResolvedRecipeName).string();
    const bool has_begun = attempt.Has("began_from");
    if (has_begun || !taken) {
      taken = std::move(found);
    }
    if (has_begun) {
      break;
    }
  }
  if (taken) {
    checkpoint = checkpoint.empty() && !NewestBelow(options.path).empty() ? options.path : checkpoint;
    options = *std::move(taken);
    return Success{};
  }
  return Fail(ExitCode::Usage, "{} is the directory of a run that was launched from a plan; name its recipe",
              options.path);
}

auto InputsOf(const Recipe& recipe) -> std::vector<std::string> {
  return InputsOf(DataOf(recipe), HeadsOf(recipe), {SeedPathOf(recipe), AdapterPathOf(recipe)});
}

auto SetOption(const RecipeOptions& options) -> GivenOption {
  return options.sets.empty() ? GivenOption{"--unset", !options.unsets.empty()} : GivenOption{"--set", true};
}

auto RefuseRecipeOptions(const std::string& path, const std::vector<GivenOption>& options) -> Status {
  for (const GivenOption& option : options) {
    FAIL_IF(option.is_given, ExitCode::Usage,
            "{} acts on a recipe, and {} is a plan; make the plan again from its recipe", option.name, path);
  }
  return Success{};
}

}  // namespace shardc
