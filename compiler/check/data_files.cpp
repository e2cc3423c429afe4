// The files that [data] and [[loss.head]] name: those that are here have the header, the format and the size that they
// should, each source holds a sample, and there is a target for each token. Files that are not here may lie where the
// run will be.

#include <optional>

#include "compiler/check/check_context.h"
#include "compiler/data/scan.h"
#include "compiler/recipe/model_sizes.h"
#include "compiler/recipe/resolved_path.h"
#include "compiler/recipe/source_name.h"

namespace shardc {

namespace {

/// A list of files, and the key that names them.
struct NamedList {
  FileList files;
  SourceRange at;
  bool is_targets = false;
};

}  // namespace

/// All that the recipe names, in the order of ListFiles. Lists without files are reported elsewhere.
/// `is_sound`: of the list that a key gives.
template <class IsSound>
static auto NamedLists(const Recipe& recipe, const IsSound& is_sound) -> std::vector<NamedList> {
  std::vector<NamedList> lists;
  const auto add = [&](const Located<std::vector<std::string>>& files, std::string name, FilePurpose purpose,
                       VocabRange range, bool is_targets) {
    if (files->empty() || !is_sound(files)) {
      return;
    }
    NamedList& list = lists.emplace_back();
    list.at = files.at;
    list.is_targets = is_targets;
    list.files = {.name = std::move(name), .purpose = std::move(purpose), .range = std::move(range), .paths = {}};
    for (const std::string& path : *files) {
      list.files.paths.push_back(ResolvedPath(recipe, path));
    }
  };
  const auto add_source = [&](const Located<std::vector<std::string>>& files, const std::string& name) {
    TokenSource source;
    source.name = name;
    DataSource data;
    data.vocab = *recipe.model.vocab;
    add(files, name, TokenPurpose(source), TokenRange(data), false);
  };
  const auto add_head = [&](const Located<std::vector<std::string>>& files, std::string name, int64_t vocab) {
    TargetHead head;
    head.name = std::move(name);
    head.vocab = vocab;
    add(files, head.name, TargetPurpose(), TargetRange(head), true);
  };
  add_source(recipe.data.tokens, "");
  for (size_t i = 0; i < recipe.data.source.size(); ++i) {
    add_source(recipe.data.source[i].tokens, SourceName(recipe, i));
  }
  add_head(recipe.data.targets, std::string(OwnHead), *recipe.model.vocab);
  for (const LossHead& head : recipe.loss.head) {
    add_head(head.targets, *head.name, *head.vocab);
  }
  return lists;
}

/// That the source holds a sample.
static auto JudgeLength(CheckContext& context, const NamedList& list, int64_t num_tokens) -> void {
  const Recipe& recipe = context.recipe();
  DataSource data;
  data.seq = *recipe.model.seq;
  data.eval_tokens = *recipe.data.eval_tokens;
  const bool is_sound = context.IsSound(recipe.model.seq, recipe.data.eval_tokens) && data.seq > 0;
  // A held-out end without a sample has been reported: data.cpp.
  if (!is_sound || (data.eval_tokens > 0 && data.eval_tokens <= data.seq)) {
    return;
  }
  TokenSource source;
  source.name = list.files.name;
  const auto splits = CutIntoSamples(data, source, num_tokens, list.files.paths.size());
  if (!splits) {
    context.diags().Build(list.at, DiagnosticKind::DataTooShort, splits.error().message).Emit();
  }
}

auto CheckDataFiles(CheckContext& context, FileChecks checks) -> void {
  const Located<OneOf<TokenFormat>>& format = context.recipe().data.format;
  if (checks == FileChecks::None || !context.IsSound(format) || !format->is_accepted()) {
    return;
  }
  std::optional<int64_t> num_tokens;
  for (const NamedList& list :
       NamedLists(context.recipe(), [&](const auto& files) { return context.IsSound(files); })) {
    const OpenedList opened = OpenList(list.files, *format);
    for (const std::string& fault : opened.faults) {
      context.diags().Build(list.at, DiagnosticKind::TokenFileInvalid, fault).Emit();
    }
    for (const std::string& path : opened.missing) {
      if (checks == FileChecks::TellMissing && context.recipe().StandInAt(list.at) == nullptr) {
        context.diags().Build(list.at, DiagnosticKind::TokenFileMissing, list.files.purpose.noun, path).Emit();
      }
    }
    if (!opened.is_whole()) {
      continue;
    }
    if (!list.is_targets) {
      num_tokens = opened.num_ids;
      JudgeLength(context, list, opened.num_ids);
    } else if (num_tokens) {
      if (const Status same = CompareTargets(list.files.name, opened.num_ids, *num_tokens); !same) {
        context.diags().Build(list.at, DiagnosticKind::TokenFileInvalid, same.error().message).Emit();
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
  int64_t num_targets = 0;
  bool is_sound = true;
  for (const NamedList& list : lists) {
    ScanOptions of_list = options;
    if (options.tell) {
      of_list.tell = [&](int64_t of_these, int64_t) { options.tell(std::min(all, done + of_these), all); };
    }
    if (const Status sound = CheckFiles({list.files}, format); !sound) {
      diagnostics.Build(list.at, DiagnosticKind::TokenFileInvalid, sound.error().message).Emit();
      is_sound = false;
      continue;
    }
    const auto scanned = ScanIds({list.files}, format, of_list);
    if (!scanned) {
      diagnostics.Build(list.at, DiagnosticKind::TokenIdInvalid, scanned.error().message).Emit();
      is_sound = false;
    }
    num_targets += scanned && list.is_targets ? scanned->lists[0].num_ids : 0;
    done += BytesToScan({list.files}, format);
  }
  const Status learns = recipe.data.targets.is_set ? CheckHoldsTarget(num_targets) : Status(Success{});
  if (is_sound && !learns) {
    diagnostics.Build(recipe.data.targets.at, DiagnosticKind::TokenFileInvalid, learns.error().message).Emit();
  }
}

}  // namespace shardc
