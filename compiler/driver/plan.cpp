// shardc plan RECIPE|PLAN: the plan, or what the options ask for, on stdout or in a file.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/parse_whole.h"
#include "compiler/checkpoint/stage_changes.h"
#include "compiler/cost/notes.h"
#include "compiler/data/replaced_input.h"
#include "compiler/driver/absolute_paths.h"
#include "compiler/driver/fit.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/plan/attempts.h"
#include "compiler/plan/text.h"
#include "compiler/recipe/write.h"
#include "compiler/report/document_lines.h"
#include "compiler/report/init_table.h"
#include "compiler/report/report.h"

namespace shardc {

namespace {

struct PlanOptions {
  RecipeOptions recipe;
  std::string output;
  bool explain = false;
  std::string fit;
  std::string price;
  bool grow_batch = false;
  /// The machine of --fit has this one, and the recipe names none.
  std::optional<Device> device_of_machine;
  std::string format = "text";
  std::string emit;
  bool print_init = false;
  std::string run_dir;
  std::string stop_after;
  std::string print_after;
  std::vector<std::string> disabled;
  std::string section;
};

/// Contents of the plan's token files, where they are here, or the fault of one.
using Facts = ErrorOr<std::vector<SourceFacts>>;

}  // namespace

/// Returns a line for each parameter: its name, type, init rule, and group of the optimizer.
static auto PrintModel(const Plan& plan) -> std::string {
  std::string text;
  for (const Parameter& parameter : plan.parameters) {
    text += fmt::format("{}  {}{}  {}  group {}\n", parameter.name, ToText(parameter.dtype), ToText(parameter.shape),
                        parameter.init, plan.groups[parameter.group].name);
  }
  return text;
}

/// Requires: the words were checked when the command line was parsed.
static auto PassNamed(std::string_view name) -> PassKind { return *FromText<PassKind>(name); }

static auto MakePipelineOptions(const PlanOptions& options) -> PipelineOptions {
  PipelineOptions pipeline;
  pipeline.run_dir = options.run_dir;
  if (!options.stop_after.empty()) {
    pipeline.stop_after = PassNamed(options.stop_after);
  }
  for (const std::string& name : options.disabled) {
    pipeline.disabled.push_back(PassNamed(name));
  }
  if (!options.print_after.empty()) {
    pipeline.after_pass = [wanted = options.print_after](PassKind pass, const Plan& plan) {
      if (wanted == "all" || wanted == ToText(pass)) {
        fmt::print(stderr, "// after {}\n{}", ToText(pass), Printable(PrintPlan(plan, {.recipe = false})));
      }
    };
  }
  return pipeline;
}

/// The path and text of the record of the newest attempt that began from initial values; nothing if there is none.
static auto NewestInitRecord(const Descriptor& run_dir) -> ErrorOr<std::optional<std::pair<std::string, std::string>>> {
  constexpr int64_t MostBytes = int64_t{256} << 20;
  ASSIGN_OR_RETURN(const auto numbers, ListAttempts(run_dir));
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    const std::string name = fmt::format("{}/{}", AttemptsName, AttemptName(*number));
    const auto attempts = OpenDirectoryAt(run_dir, AttemptsName);
    const auto folder = attempts ? OpenDirectoryAt(*attempts, AttemptName(*number)) : attempts.error();
    const auto status = folder ? StatusAt(*folder, std::string(InitRecordName)) : folder.error();
    if (!status || status->kind == EntryKind::Missing) {
      continue;
    }
    ASSIGN_OR_RETURN(auto text, ReadFileAt(*folder, std::string(InitRecordName), MostBytes));
    return std::optional(std::pair{fmt::format("{}/{}/{}", run_dir.path(), name, InitRecordName), std::move(text)});
  }
  return std::optional<std::pair<std::string, std::string>>();
}

/// The initial values that a run recorded: the run of the recipe, which need not exist, or that of `run_dir`.
static auto FindRealisedInit(const Plan& plan, const std::string& run_dir) -> ErrorOr<std::optional<RealisedInit>> {
  const std::string& path = run_dir.empty() ? plan.run.run_dir : run_dir;
  std::error_code unknown;
  if (run_dir.empty() && (path.empty() || !std::filesystem::exists(path, unknown))) {
    return std::optional<RealisedInit>();
  }
  const auto folder = OpenDirectory(PosixFs(), path);
  const auto record = folder ? NewestInitRecord(*folder) : folder.error();
  FAIL_IF(!record, ExitCode::Usage, "{}", record.error().message);
  if (*record) {
    return std::optional(ReadRealisedInit((*record)->first, (*record)->second, plan));
  }
  FAIL_IF(!run_dir.empty(), ExitCode::Usage, "no run in {} has a record of its initial values ({}/NNNN/{})", path,
          AttemptsName, InitRecordName);
  return std::optional<RealisedInit>();
}

/// Is the report what the command prints or writes first?
static auto AsksForReport(const PlanOptions& options) -> bool {
  const bool is_alone = options.emit.empty() && options.output.empty();
  return options.emit == "explain" || (is_alone && (options.explain || !options.fit.empty())) ||
         (options.emit.empty() && options.format == "html");
}

/// Renders the report in the format that was asked for.
static auto ReportText(const Report& report, const PlanOptions& options) -> std::string {
  if (options.format == "json") {
    return RenderReportJson(report);
  }
  if (options.format == "html") {
    return RenderReportHtml(report);
  }
  return RenderReportText(report);
}

/// With what its token files hold, and what it changes beside the run that it continues, where they are here. Errors: a
/// run would refuse one of these files.
static auto ReportOf(const Plan& plan, const Facts& facts, const std::optional<FitUse>& fit = {}) -> ErrorOr<Report> {
  if (!facts) {
    return facts.error();
  }
  Report report = Explain(plan);
  report.mixture = MixtureOf(plan, *facts);
  ASSIGN_OR_RETURN(report.documents, CountDocuments(plan, *facts, report.mixture));
  report.seed.changes = ReadStageChanges(plan);
  report.fit = fit;
  report.time = fit ? fit->now.time : report.time;
  return report;
}

/// What the command prints or writes.
static auto ResultText(const Plan& plan, const Facts& facts, const PlanOptions& options,
                       const std::optional<FitUse>& fit) -> ErrorOr<std::string> {
  if (options.print_init) {
    ASSIGN_OR_RETURN(const auto realised, FindRealisedInit(plan, options.run_dir));
    return options.format == "json" ? RenderInitJson(plan, realised) : Printable(RenderInitText(plan, realised));
  }
  if (options.emit == "model") {
    return PrintModel(plan);
  }
  if (AsksForReport(options)) {
    ASSIGN_OR_RETURN(const auto report, ReportOf(plan, facts, fit));
    return ReportText(report, options);
  }
  if (options.emit == "json" || (options.emit.empty() && options.format == "json")) {
    return PlanJson(plan);
  }
  PrintOptions print;
  if (!options.section.empty()) {
    print.section = FromText<SectionKind>(options.section);
  }
  return PrintPlan(plan, print);
}

static auto WriteOut(const std::string& text, const std::string& output) -> Status {
  return output.empty() ? WriteResult(text) : WriteFile(output, text);
}

/// Checks that the output replaces nothing that is read.
static auto CheckOutput(const PlanOptions& options, std::vector<std::string> inputs) -> Status {
  inputs.push_back(options.recipe.path);
  return CheckReplacesNone("-o", options.output, inputs);
}

/// Answers --fit, and reports each part of the answers when it is known.
using FitMaker = std::function<FitUse(const FitListener& known)>;

/// Prints the report for people, the parts of --fit as they become known.
static auto PrintAsKnown(const Plan& plan, const Facts& facts, const PlanOptions& options, const FitMaker& make_fit)
    -> ErrorOr<FitUse> {
  if (!facts) {
    return facts.error();
  }
  Status written = Success{};
  const auto print = [&](const std::string& text) { written = written ? WriteResult(text) : written; };
  const FitUse fit = make_fit([&](const FitUse& so_far, FitPart part, size_t row) {
    if (part == FitPart::Now && (options.explain || !options.emit.empty())) {
      Report report = *ReportOf(plan, facts);
      report.time = so_far.now.time;
      print(RenderReportText(report) + "\n");
    }
    print(FitPartText(so_far, part, row));
  });
  RETURN_IF_ERROR(written);
  return fit;
}

/// Prints or writes what the options ask for. `make_fit` is empty without --fit.
static auto ShowPlan(const Plan& plan, const Facts& facts, const PlanOptions& options, const FitMaker& make_fit)
    -> Status {
  SetCheckContext("printing the plan");
  RETURN_IF_ERROR(CheckOutput(options, InputsOf(plan.data, plan.heads, {plan.seed.path, plan.seed.adapter_path})));
  const bool writes_plan_first = !options.output.empty() && options.emit.empty() && !AsksForReport(options);
  const bool prints_as_known = make_fit && options.format == "text" && (writes_plan_first || options.output.empty());
  std::optional<FitUse> fit = make_fit && !prints_as_known ? std::optional(make_fit({})) : std::nullopt;
  if (writes_plan_first || !prints_as_known) {
    ASSIGN_OR_RETURN(const auto text, ResultText(plan, facts, options, fit));
    RETURN_IF_ERROR(WriteOut(text, options.output));
  }
  if (prints_as_known) {
    ASSIGN_OR_RETURN(fit, PrintAsKnown(plan, facts, options, make_fit));
  } else if (writes_plan_first && (options.explain || fit)) {
    ASSIGN_OR_RETURN(const auto report, ReportOf(plan, facts, fit));
    RETURN_IF_ERROR(WriteResult(ReportText(report, options)));
  }
  // What does not fit has been said; the code tells scripts.
  return fit && !fit->fits() ? Status(Error{ExitCode::DoesNotFit, ""}) : Success{};
}

/// Requires: --fit.
static auto QuestionOf(const PlanOptions& options) -> FitQuestion {
  return {.budget = *ParseBudget(options.fit),
          .grows_batch = options.grow_batch,
          .price = ParseWhole<double>(options.price),
          .device_of_machine = options.device_of_machine};
}

/// `text` is that of the recipe.
static auto MakePlan(RecipeSource& source, const std::string& text, const PlanOptions& options) -> Status {
  if (options.emit == "recipe") {
    ASSIGN_OR_RETURN(const auto recipe, source.Printed(source.Load()));
    RETURN_IF_ERROR(CheckOutput(options, InputsOf(recipe)));
    return WriteOut(PrintRecipe(recipe), options.output);
  }
  RETURN_IF_ERROR(CheckWorkingDirectory());
  ASSIGN_OR_RETURN(auto plan, source.Printed(source.LoadAndCompile(MakePipelineOptions(options))));
  MakePathsAbsolute(plan);
  const Facts facts = LookAtData(plan);
  if (options.stop_after.empty() && options.disabled.empty()) {
    fmt::print(stderr, "{}", Printable(NotesText(plan, facts)));
  }
  const FitMaker make_fit = [&](const FitListener& known) {
    return FitOfRecipe(plan, options.recipe, text, QuestionOf(options), known);
  };
  return ShowPlan(plan, facts, options, options.fit.empty() ? FitMaker() : make_fit);
}

/// Shows a plan file, if the verifier accepts it, as MakePlan shows the plan of a recipe.
static auto ShowPlanFile(std::string_view text, const PlanOptions& options) -> Status {
  RETURN_IF_ERROR(RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe),
                                                            {"--grow-batch", options.grow_batch},
                                                            {"--emit=recipe", options.emit == "recipe"},
                                                            {"--stop-after", !options.stop_after.empty()},
                                                            {"--print-after", !options.print_after.empty()},
                                                            {"--disable", !options.disabled.empty()}}));
  RecipeSource source(options.recipe);
  ASSIGN_OR_RETURN(const auto plan, source.ReadPlan(text));
  const Facts facts = LookAtData(plan);
  if (!facts) {
    return facts.error();
  }
  fmt::print(stderr, "{}", Printable(NotesText(plan, facts)));
  const FitMaker make_fit = [&](const FitListener& known) { return FitOfPlanFile(plan, QuestionOf(options), known); };
  return ShowPlan(plan, facts, options, options.fit.empty() ? FitMaker() : make_fit);
}

/// Do --fit and --format html ask for the report, and nothing for something else? Errors: Usage.
static auto CheckReportOptions(const PlanOptions& options) -> Status {
  const std::string other = options.print_init                                   ? "--print-init"
                            : !options.emit.empty() && options.emit != "explain" ? "--emit=" + options.emit
                            : !options.section.empty()                           ? "--section"
                                                                                 : "";
  FAIL_IF(options.format == "html" && !other.empty(), ExitCode::Usage,
          "--format html is a page of the report, and {} asks for something else", other);
  if (options.fit.empty()) {
    const bool needs_fit = options.grow_batch || !options.price.empty();
    return needs_fit
               ? Fail(ExitCode::Usage, "{} needs --fit MEMORY|MACHINE", options.grow_batch ? "--grow-batch" : "--price")
               : Status(Success{});
  }
  if (const auto price = ParseWhole<double>(options.price);
      !options.price.empty() && (!price || !(*price >= 0 && *price < 1e6))) {
    return Fail(ExitCode::Usage, "--price: `{}` is no number of dollars; write what a GPU costs per hour, such as 2.50",
                options.price);
  }
  if (const auto budget = ParseBudget(options.fit); !budget) {
    return budget.error();
  }
  const std::string part = !options.stop_after.empty() ? "--stop-after"
                           : !options.disabled.empty() ? "--disable"
                                                       : other;
  return part.empty() ? Status(Success{})
                      : Fail(ExitCode::Usage, "--fit judges whole plans, and {} asks for something else", part);
}

/// Plans for the machine that --fit names, unless the recipe says for which device. All of machines.def are GPUs.
static auto TakeDeviceOfMachine(PlanOptions& options, const std::optional<std::string>& text) -> void {
  if (options.fit.empty() || ParseBudget(options.fit)->machine == nullptr) {
    return;
  }
  RecipeSource source(options.recipe, text, LeftOut::Assume);
  // The faults of the recipe are reported when its plan is made.
  if (const auto recipe = source.Load(); recipe && !recipe->run.device.is_set) {
    options.device_of_machine = Device::Cuda;
    options.recipe.sets.push_back(fmt::format("run.device={}", ToText(Device::Cuda)));
  }
}

template <NamedEnum E>
static auto NamesOf() -> std::vector<std::string> {
  return {EnumNames<E>::names.begin(), EnumNames<E>::names.end()};
}

auto DeclarePlan(CommandOptions& options) -> Action {
  const auto values = std::make_shared<PlanOptions>();
  std::vector<std::string> passes = NamesOf<PassKind>();
  DeclareRecipeOptions(options, values->recipe);
  options.Text("-o,--output", values->output, "FILE", "write to this file, whole or not at all, instead of stdout");
  options.Flag("--explain", values->explain, "print what the plan will cost; with -o, also write the plan");
  options.Text("--fit", values->fit, "MEMORY|MACHINE",
               "say whether each rank fits into this memory, such as 80GiB or h100 (exit code 4 if not), what each key "
               "would change, and the cheapest or fastest keys and the fewest ranks that fit");
  options.Text("--price", values->price, "USD", "with --fit: what a GPU costs per hour, to give the run in dollars");
  options.Flag("--grow-batch", values->grow_batch,
               "with --fit: also plan larger microbatches, up to the first that does not fit");
  options.Choice("--format", values->format, {"text", "json", "html"},
                 "format of the result; html is the report as a page");
  options.Choice("--emit", values->emit, {"recipe", "model", "plan", "json", "explain"},
                 "print the recipe with its defaults, the parameters, the plan as text or JSON, or the report");
  options.Flag(
      "--print-init", values->print_init,
      "print the rule of each parameter's initial values, with mean and standard deviation, instead of the plan");
  options.Text(
      "--run-dir", values->run_dir, "DIR",
      "with --print-init: also print the mean and deviation that the run in this directory began with; default: the "
      "recipe's run directory");
  options.Choice("--section", values->section, NamesOf<SectionKind>(),
                 "print this section of the plan only, to read; not with -o");
  options.Choice("--stop-after", values->stop_after, passes, "stop after this pass");
  for (const std::string& pass : passes) {
    CHECK(pass != "all", "pass {}", pass);
  }
  std::vector<std::string> passes_or_all = passes;
  passes_or_all.emplace_back("all");
  options.Choice("--print-after", values->print_after, passes_or_all, "print the plan to stderr after this pass");
  options.Repeated("--disable", values->disabled, "PASS",
                   "leave out a pass, to look at the plan; such a plan does not run");
  return [values, passes] {
    for (const std::string& name : values->disabled) {
      if (!FromText<PassKind>(name)) {
        return ReportError(
            Fail(ExitCode::Usage, "--disable: `{}` is no pass; passes: {}", name, fmt::join(passes, ", ")));
      }
    }
    if (values->print_init && !values->emit.empty()) {
      return ReportError(Fail(ExitCode::Usage, "--print-init and --emit={} both say what to print", values->emit));
    }
    if (const Status agrees = CheckReportOptions(*values); !agrees) {
      return ReportError(agrees.error());
    }
    if (!values->section.empty() && !values->output.empty()) {
      return ReportError(Fail(ExitCode::Usage,
                              "--section prints a section to read, and -o writes a plan that reads back whole: leave "
                              "one of them out"));
    }
    if (!values->print_init && !values->run_dir.empty()) {
      return ReportError(
          Fail(ExitCode::Usage, "--run-dir needs --print-init: it names the run whose initial values to print"));
    }
    NamedText named = ReadRecipeOrPlan(values->recipe.path);
    if (named.is_plan) {
      return ExitCodeOf(ShowPlanFile(*named.text, *values));
    }
    TakeDeviceOfMachine(*values, named.text);
    RecipeSource source(values->recipe, named.text, LeftOut::Assume);
    return ExitCodeOf(MakePlan(source, named.text.value_or(""), *values));
  };
}

}  // namespace shardc
