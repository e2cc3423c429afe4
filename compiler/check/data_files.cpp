// The files that [data] and [[loss.head]] name: those that are here have the header, the format and the size that they
// should, each source holds a sample, and there is a target for each token. Files that are not here may lie where the
// run will be.

#include <map>
#include <string>

#include "compiler/check/check_context.h"
#include "compiler/check/expression_place.h"
#include "compiler/check/recipe_data.h"
#include "compiler/data/packed_files.h"
#include "compiler/data/scan.h"

namespace shardc {

namespace {

/// A list of files, and the key that names them.
struct NamedList {
  FileList files;
  SourceRange at;
};

}  // namespace

/// Returns the keys that name lists, in the order of ListFiles.
static auto FileKeysOf(const Recipe& recipe) -> std::vector<const Located<std::vector<std::string>>*> {
  std::vector<const Located<std::vector<std::string>>*> keys;
  if (recipe.data.tokens.is_set && recipe.data.source.empty()) {
    keys.push_back(&recipe.data.tokens);
  }
  for (const SourceTable& source : recipe.data.source) {
    keys.push_back(&source.tokens);
  }
  for (const SourceTable& source : recipe.data.source) {
    if (source.targets.is_set) {
      keys.push_back(&source.targets);
    }
  }
  if (recipe.data.targets.is_set) {
    keys.push_back(&recipe.data.targets);
  }
  for (const LossHead& head : recipe.loss.head) {
    keys.push_back(&head.targets);
  }
  if (recipe.data.eval.is_set) {
    keys.push_back(&recipe.data.eval);
  }
  return keys;
}

/// Returns all lists that the recipe names, in the order of ListFiles. Lists without files are reported elsewhere.
/// `is_sound`: of the list that a key gives.
template <class IsSound>
static auto NamedLists(const Recipe& recipe, const IsSound& is_sound) -> std::vector<NamedList> {
  const auto keys = FileKeysOf(recipe);
  std::vector<FileList> files = ListFiles(DataOf(recipe), HeadsOf(recipe));
  std::vector<NamedList> lists;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!files[i].paths.empty() && is_sound(*keys[i])) {
      lists.push_back({std::move(files[i]), keys[i]->at});
    }
  }
  return lists;
}

/// That the source holds a sample.
static auto JudgeLength(CheckContext& context, const NamedList& list, int64_t num_tokens) -> void {
  const Recipe& recipe = context.recipe();
  DataSource data;
  data.seq = *recipe.model.seq;
  data.eval_tokens = *recipe.data.eval_tokens;
  data.pack = DataOf(recipe).pack;
  const bool is_sound = context.IsSound(recipe.model.seq, recipe.data.eval_tokens) && data.seq > 0;
  // A held-out end without a sample has been reported: data.cpp.
  if (!is_sound || (data.eval_tokens > 0 && data.eval_tokens <= data.seq)) {
    return;
  }
  TokenSource source;
  source.name = list.files.name;
  const auto splits = CutIntoSamples(data, source, num_tokens, list.files.paths.size());
  if (!splits) {
    context.diags().Report(list.at, DiagnosticKind::DataTooShort, splits.error().message);
  }
}

/// Checks that the files of data.eval hold a sample.
static auto JudgeEval(CheckContext& context, const NamedList& list, const OpenedList& opened) -> void {
  const Located<int64_t>& seq = context.recipe().model.seq;
  const Located<OneOf<Documents>>& documents = context.recipe().data.documents;
  if (!opened.missing.empty()) {
    context.diags().Report(
        list.at, DiagnosticKind::EvalFiles,
        fmt::format("evaluation file {} is not here, and the plan says how many samples an evaluation has",
                    opened.missing.front()));
  } else if (const DataSource data = DataOf(context.recipe()); data.packs()) {
    const auto rows =
        context.IsSound(seq, documents) && opened.faults.empty() ? CountEvalRows(data) : ErrorOr<int64_t>(0);
    if (!rows) {
      context.diags().Report(list.at, DiagnosticKind::EvalFiles, rows.error().message);
    }
  } else if (opened.faults.empty() && context.IsSound(seq) && opened.num_ids <= *seq) {
    context.diags().Report(list.at, DiagnosticKind::EvalFiles,
                           fmt::format("the files of `eval` hold {} tokens, and one sample takes {} (`model.seq` + 1)",
                                       opened.num_ids, *seq + 1));
  }
}

/// Checks that each pattern stands for a file.
static auto CheckPatterns(CheckContext& context) -> void {
  const Recipe& recipe = context.recipe();
  for (const Located<std::vector<std::string>>* key : FileKeysOf(recipe)) {
    for (const std::string& path : **key) {
      if (context.IsSound(*key) && FilesOf(recipe, path).empty()) {
        context.diags()
            .Build(PlaceInList(context.diags().sources(), key->at, path), DiagnosticKind::TokenPatternUnmatched, path)
            .Help("name files that are there; a pattern is relative to the recipe's folder")
            .Emit();
      }
    }
  }
}

auto CheckDataFiles(CheckContext& context, FileChecks checks) -> void {
  const Located<OneOf<TokenFormat>>& format = context.recipe().data.format;
  if (checks != FileChecks::None) {
    CheckPatterns(context);
  }
  if (checks == FileChecks::None || !context.IsSound(format) || !format->is_accepted()) {
    return;
  }
  // By the name of a source; the one stream has none.
  std::map<std::string, int64_t> num_tokens;
  for (const NamedList& list :
       NamedLists(context.recipe(), [&](const auto& files) { return context.IsSound(files); })) {
    const OpenedList opened = OpenList(list.files, *format);
    for (const std::string& fault : opened.faults) {
      context.diags().Report(list.at, DiagnosticKind::TokenFileInvalid, fault);
    }
    for (const std::string& path : opened.missing) {
      if (checks == FileChecks::TellMissing && !list.files.is_eval && context.recipe().StandInAt(list.at) == nullptr) {
        context.diags().Report(list.at, DiagnosticKind::TokenFileMissing, list.files.purpose.noun, path);
      }
    }
    if (list.files.is_eval) {
      JudgeEval(context, list, opened);
      continue;
    }
    if (!opened.is_whole()) {
      continue;
    }
    if (!list.files.cut) {
      num_tokens[list.files.name] = opened.num_ids;
      JudgeLength(context, list, opened.num_ids);
    } else if (const auto tokens = num_tokens.find(list.files.is_of_source ? list.files.name : "");
               tokens != num_tokens.end()) {
      if (const Status same = CompareTargets(list.files.OwnerText(), opened.num_ids, tokens->second); !same) {
        context.diags().Report(list.at, DiagnosticKind::TokenFileInvalid, same.error().message);
      }
    }
  }
}

auto ScanDataFiles(const Recipe& recipe, Diagnostics& diagnostics, const ScanOptions& options) -> void {
  const std::vector<NamedList> lists = NamedLists(recipe, [](const auto&) { return true; });
  const TokenFormat format = *recipe.data.format;
  int64_t all = 0;
  for (const NamedList& list : lists) {
    all += BytesToScan({list.files}, format);
  }
  int64_t done = 0;
  int64_t eval_targets = 0;
  bool is_sound = true;
  for (const NamedList& list : lists) {
    ScanOptions of_list = options;
    if (options.tell) {
      of_list.tell = [&](int64_t of_these, int64_t) { options.tell(std::min(all, done + of_these), all); };
    }
    if (const Status sound = CheckFiles({list.files}, format); !sound) {
      diagnostics.Report(list.at, DiagnosticKind::TokenFileInvalid, sound.error().message);
      is_sound = false;
      continue;
    }
    const auto scanned = ScanIds({list.files}, format, of_list);
    if (!scanned) {
      diagnostics.Report(list.at, DiagnosticKind::TokenIdInvalid, scanned.error().message);
      is_sound = false;
    } else if (list.files.cut) {
      const Status learns = CheckHoldsTarget(list.files.OwnerText(), scanned->lists[0].train_targets);
      if (!learns) {
        diagnostics.Report(list.at, DiagnosticKind::TokenFileInvalid, learns.error().message);
        is_sound = false;
      }
      eval_targets += scanned->lists[0].eval_targets;
    }
    done += BytesToScan({list.files}, format);
  }
  const bool evaluates = recipe.data.targets.is_set && *recipe.data.eval_tokens > 0;
  const Status judged = evaluates ? CheckHoldsEvalTarget(eval_targets) : Status(Success{});
  if (is_sound && !judged) {
    diagnostics.Report(recipe.data.targets.at, DiagnosticKind::TokenFileInvalid, judged.error().message);
  }
}

}  // namespace shardc
