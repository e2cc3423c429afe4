#include "compiler/data/data_files.h"

#include <algorithm>

namespace shardc {

auto TokenPurpose(const TokenSource& source) -> FilePurpose {
  return {.noun = "token", .key = source.name.empty() ? "data.tokens" : "data.source.tokens"};
}

auto TokenRange(const DataSource& data) -> VocabRange {
  return {.vocab = data.vocab, .vocab_name = "`model.vocab`", .none = 0};
}

auto TargetPurpose() -> FilePurpose { return {.noun = "target", .key = "targets"}; }

auto TargetRange(const DataSource& data) -> VocabRange {
  return {.vocab = data.vocab, .vocab_name = "`model.vocab`", .none = 1};
}

auto TargetRange(const TargetHead& head) -> VocabRange {
  return {.vocab = head.vocab, .vocab_name = fmt::format("the vocabulary of head {}", head.name), .none = 1};
}

auto TokenList(const DataSource& data, const TokenSource& source) -> FileList {
  return {.name = source.name, .purpose = TokenPurpose(source), .range = TokenRange(data), .paths = source.files};
}

/// Returns the cut of the targets. A packed sample has any token, so each is counted as a sample of its own.
static auto CutOf(const DataSource& data) -> TargetCut {
  return {.seq = data.packs() ? 1 : data.seq, .eval_tokens = data.eval_tokens};
}

auto TargetList(const DataSource& data, const TokenSource& source) -> FileList {
  return {.name = source.name,
          .purpose = TargetPurpose(),
          .range = TargetRange(data),
          .paths = source.targets,
          .cut = CutOf(data),
          .is_of_source = true};
}

auto EvalList(const DataSource& data) -> FileList {
  return {.name = "",
          .purpose = {.noun = "evaluation", .key = "data.eval"},
          .range = TokenRange(data),
          .paths = data.eval_files,
          .is_eval = true};
}

auto CheckEvalTokens(const DataSource& data, int64_t num_ids) -> Status {
  return num_ids == data.eval_file_tokens
             ? Status(Success{})
             : Fail(
                   ExitCode::RecipeRejected,
                   "the files of `data.eval` hold {} ids, and they held {} when the plan was made, which says how many "
                   "samples an evaluation has; make the plan again",
                   num_ids, data.eval_file_tokens);
}

auto ListFiles(const DataSource& data, const HeadTable& heads) -> std::vector<FileList> {
  std::vector<FileList> lists;
  if (data.is_synthetic()) {
    return lists;
  }
  for (const TokenSource& source : data.sources) {
    lists.push_back(TokenList(data, source));
  }
  for (const TokenSource& source : data.sources) {
    if (!source.targets.empty()) {
      lists.push_back(TargetList(data, source));
    }
  }
  for (const TargetHead& head : heads) {
    lists.push_back({.name = head.name,
                     .purpose = TargetPurpose(),
                     .range = TargetRange(head),
                     .paths = head.files,
                     .cut = CutOf(data)});
  }
  if (!data.eval_files.empty()) {
    lists.push_back(EvalList(data));
  }
  return lists;
}

auto CheckNamesFiles(const DataSource& data) -> Status {
  if (data.is_synthetic()) {
    return Success{};
  }
  FAIL_IF(data.sources.empty(), ExitCode::RecipeRejected, "no token files: `data.tokens` is empty");
  for (const TokenSource& source : data.sources) {
    FAIL_IF(source.files.empty(), ExitCode::RecipeRejected, "{}no token files: `{}` is empty", OfSource(source.name),
            TokenPurpose(source).key);
  }
  return Success{};
}

auto OpenList(const FileList& list, TokenFormat format) -> OpenedList {
  OpenedList opened;
  for (const std::string& path : list.paths) {
    // A dataset of Megatron that is named without its ending is never right, whatever machine the run is for.
    if (IsMissing(path) && (format != TokenFormat::Megatron || path.ends_with(".bin"))) {
      opened.missing.push_back(path);
      continue;
    }
    const auto file = OpenTokenFile(path, format, list.purpose);
    const Status fits = file ? CheckNoneFits(*file, list.purpose.noun, list.range) : Status(file.error());
    if (!fits) {
      opened.faults.push_back(fits.error().message);
      continue;
    }
    opened.num_ids += file->num_ids;
    opened.file_bytes += file->file_bytes;
  }
  return opened;
}

auto CompareTargets(const std::string& owner, int64_t num_targets, int64_t num_tokens) -> Status {
  if (num_targets == num_tokens) {
    return Success{};
  }
  return Fail(ExitCode::RecipeRejected,
              "the target files of {} hold {} ids, and the token files {}: there is one for each token", owner,
              num_targets, num_tokens);
}

auto CheckHoldsTarget(const std::string& owner, int64_t num_targets) -> Status {
  return num_targets > 0 ? Status(Success{})
                         : Fail(ExitCode::RecipeRejected,
                                "{} has no target to train on: at each position of the training samples its "
                                "target files have the greatest number of their type, which means \"no target\"; write "
                                "the files again, or name others",
                                owner);
}

auto CheckHoldsEvalTarget(int64_t num_targets) -> Status {
  return num_targets > 0 ? Status(Success{})
                         : Fail(ExitCode::RecipeRejected,
                                "no position of the held-out samples has a target, so no evaluation would have a loss; "
                                "hold out others (`data.eval_tokens`), or none (0)");
}

auto LookAtData(const Plan& plan) -> ErrorOr<std::vector<SourceFacts>> {
  const DataSource& data = plan.data;
  std::vector<SourceFacts> facts(data.sources.size());
  const std::vector<FileList> lists = ListFiles(data, plan.heads);
  for (size_t i = 0; i < lists.size(); ++i) {
    const OpenedList opened = OpenList(lists[i], data.format);
    FAIL_IF(!opened.faults.empty(), ExitCode::RecipeRejected, "{}", opened.faults.front());
    if (!opened.is_whole()) {
      continue;
    }
    if (lists[i].is_eval) {
      RETURN_IF_ERROR(CheckEvalTokens(data, opened.num_ids));
      continue;
    }
    if (i >= data.sources.size()) {
      const auto is_beside = [&](const TokenSource& source) { return source.name == lists[i].name; };
      const auto source = std::ranges::find_if(data.sources, is_beside);
      const SourceFacts& beside =
          lists[i].is_of_source ? facts[static_cast<size_t>(source - data.sources.begin())] : facts.front();
      if (beside.is_known) {
        RETURN_IF_ERROR(CompareTargets(lists[i].OwnerText(), opened.num_ids, beside.tokens));
      }
      continue;
    }
    if (lists[i].paths.empty()) {
      continue;
    }
    ASSIGN_OR_RETURN(const auto splits, CutIntoSamples(data, data.sources[i], opened.num_ids, lists[i].paths.size()));
    facts[i] = {.is_known = true, .tokens = opened.num_ids, .splits = splits};
  }
  return facts;
}

}  // namespace shardc
