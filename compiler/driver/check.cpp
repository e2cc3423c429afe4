// shardc check RECIPE|PLAN: reports errors and does nothing else. For a recipe the passes run too, because some rules
// need the model's parameters; a plan is judged as `shardc run` judges it. Token files that are here are judged too.

#include <memory>

#include "compiler/base/printable.h"
#include "compiler/base/processor.h"
#include "compiler/cost/notes.h"
#include "compiler/data/document_facts.h"
#include "compiler/data/scan_bar.h"
#include "compiler/data/undeclared_end.h"
#include "compiler/driver/output.h"
#include "compiler/driver/recipe_source.h"
#include "compiler/verify/read_plan.h"

namespace shardc {

namespace {

struct CheckOptions {
  RecipeOptions recipe;
  std::string format = "text";
  bool data = false;
};

}  // namespace

/// All cores, and a bar on a terminal.
static auto ScanOnTerminal(ScanBar& bar) -> ScanOptions {
  return {.threads = NumCores(), .tell = [&bar](int64_t done, int64_t all) { bar.Tell(done, all); }};
}

/// Prints what the documents of the files give a run, and warns of ends that are not declared. Requires: files that a
/// scan found sound. Errors: documents that cannot be trained on.
static auto JudgeDocuments(const Plan& plan) -> Status {
  ASSIGN_OR_RETURN(const auto documents, LookAtDocuments(plan, NumCores()));
  ASSIGN_OR_RETURN(const auto of_stream, StreamDocumentsText(plan, NumCores()));
  fmt::print(stderr, "{}", Printable(of_stream + DocumentsText(plan, documents)));
  for (const DocumentFacts& of : documents.sources) {
    RETURN_IF_ERROR(CheckKeepsTargets(plan.data, of));
  }
  for (const TokenSource& source : plan.data.sources) {
    if (source.document_end < 0 && !plan.data.is_synthetic()) {
      const FileList list = TokenList(plan.data, source);
      ASSIGN_OR_RETURN(const auto end, FindUndeclaredEnd(list, plan.data.format));
      fmt::print(stderr, "{}", end ? Printable(fmt::format("warning: {}\n", ToText(*end, list))) : "");
    }
  }
  return Success{};
}

/// The files of a plan file, which has no lines of a recipe to show.
static auto JudgePlanData(const Plan& plan, const ErrorOr<std::vector<SourceFacts>>& facts, bool scans) -> Status {
  RETURN_IF_ERROR(CheckNamesFiles(plan.data));
  if (!facts) {
    return facts.error();
  }
  const std::vector<FileList> lists = ListFiles(plan.data, plan.heads);
  if (scans) {
    RETURN_IF_ERROR(CheckFiles(lists, plan.data.format));
    ScanBar bar(stderr);
    const auto scanned = ScanIds(lists, plan.data.format, ScanOnTerminal(bar));
    const Status learns = scanned ? CheckHasTargets(plan, *scanned) : scanned.error();
    bar.Clear();
    return learns ? JudgeDocuments(plan) : learns;
  }
  for (const FileList& list : lists) {
    for (const std::string& path : list.paths) {
      if (IsMissing(path)) {
        fmt::print(stderr, "warning: {} file {} is not here; the run will need it\n", list.purpose.noun,
                   PrintableLine(path));
      }
    }
  }
  return Success{};
}

static auto Answer(const CheckOptions& options, const RecipeSource& source, const Status& judged) -> ExitCode {
  if (options.format == "json") {
    const Status written = WriteResult(RenderJson(source.diagnostics()));
    return judged ? ExitCodeOf(written) : ReportError(judged.error());
  }
  if (!judged) {
    return ReportError(judged.error());
  }
  return ExitCodeOf(
      WriteResult(fmt::format("{}: ok{}\n", PrintableLine(options.recipe.path),
                              source.has_assumed() ? " to plan; `shardc run` needs what was assumed" : "")));
}

static auto RunCheck(const CheckOptions& options) -> ExitCode {
  NamedText named = ReadRecipeOrPlan(options.recipe.path);
  if (named.is_plan) {
    if (const Status fits = RefuseRecipeOptions(options.recipe.path, {SetOption(options.recipe)}); !fits) {
      return ReportError(fits.error());
    }
    RecipeSource source(options.recipe);
    auto plan = source.ReadPlan(*named.text);
    if (const Status whole = plan ? CheckAssumesNothing(options.recipe.path, *plan) : Status(Success{}); !whole) {
      return Answer(options, source, whole);
    }
    if (plan) {
      const auto facts = LookAtData(*plan);
      const Status judged = JudgePlanData(*plan, facts, options.data);
      fmt::print(stderr, "{}", Printable(judged ? NotesText(*plan, facts) : ""));
      return Answer(options, source, judged);
    }
    // In JSON each fault is a line of its own.
    return Answer(options, source, options.format == "json" ? Error{plan.error().code, ""} : plan.error());
  }
  RecipeSource source(options.recipe, std::move(named.text), LeftOut::Assume);
  source.set_file_checks(options.data ? FileChecks::Judge : FileChecks::TellMissing);
  ScanBar bar(stderr);
  if (options.data) {
    source.set_scan(ScanOnTerminal(bar));
  }
  const auto plan = source.LoadAndCompile({});
  bar.Clear();
  if (options.format == "text") {
    source.PrintDiagnostics();
  }
  fmt::print(stderr, "{}", Printable(plan ? NotesText(*plan, LookAtData(*plan)) : ""));
  const Status judged = plan && options.data ? JudgeDocuments(*plan) : Status(Success{});
  return Answer(options, source, plan ? judged : plan.error());
}

auto DeclareCheck(CommandOptions& options) -> Action {
  const auto values = std::make_shared<CheckOptions>();
  DeclareRecipeOptions(options, values->recipe);
  options.Choice("--format", values->format, {"text", "json"}, "text on stderr, or JSON Lines on stdout");
  options.Flag("--data", values->data,
               "look at every id of the token files too, and name the first that lies outside of the vocabulary");
  return [values] { return RunCheck(*values); };
}

}  // namespace shardc
