#include "compiler/data/document_facts.h"

#include <algorithm>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/data/packed_files.h"
#include "compiler/data/scan.h"
#include "compiler/data/splits.h"
#include "compiler/plan/run_samples.h"

namespace shardc {

namespace {

/// Targets beside the tokens of a source, which are counted file after file.
class TargetFiles {
 public:
  static auto Open(const FileList& list, TokenFormat format) -> ErrorOr<TargetFiles> {
    TargetFiles files;
    files.list_ = list;
    for (const std::string& path : list.paths) {
      ASSIGN_OR_RETURN(auto file, OpenTokenFile(path, format, list.purpose));
      files.files_.push_back(std::move(file));
    }
    return files;
  }

  /// Counts the targets of a range, which lies in one file. Requires: no range of a file before.
  auto Count(Interval ids) -> ErrorOr<int64_t> {
    if (ids.empty()) {
      return 0;
    }
    while (ids.begin >= begin_of_file_ + files_[file_].num_ids) {
      begin_of_file_ += files_[file_].num_ids;
      read_ = Interval{};
      ++file_;
      CHECK(file_ < files_.size(), "targets {} to {}", ids.begin, ids.end);
    }
    const TokenFile& file = files_[file_];
    int64_t count = 0;
    while (ids.begin < ids.end) {
      if (ids.begin < read_.begin || ids.begin >= read_.end) {
        RETURN_IF_ERROR(ReadFrom(ids.begin));
      }
      const Interval here = Intersect(ids, read_);
      count +=
          CountIds(raw_.data() + (here.begin - read_.begin) * file.type.bytes, here.size(), file.type, list_.range);
      ids.begin = here.end;
    }
    return count;
  }

 private:
  auto ReadFrom(int64_t id) -> Status {
    constexpr int64_t IdsAtOnce = 256 << 10;
    const TokenFile& file = files_[file_];
    read_ = {id, std::min(id + IdsAtOnce, begin_of_file_ + file.num_ids)};
    return ReadRawIds(file, list_.purpose.noun, id - begin_of_file_, read_.size(), raw_);
  }

  FileList list_;
  std::vector<TokenFile> files_;
  size_t file_ = 0;
  int64_t begin_of_file_ = 0;
  Interval read_;
  std::vector<uint8_t> raw_;
};

}  // namespace

/// Returns the files of targets of a source; null if its targets are the next tokens.
static auto TargetsOf(const Plan& plan, const TokenSource& source) -> std::optional<FileList> {
  if (!source.targets.empty()) {
    return TargetList(plan.data, source);
  }
  if (!plan.OwnHead().valid()) {
    return std::nullopt;
  }
  const TargetHead& own = plan.heads[plan.OwnHead()];
  return FileList{.name = own.name, .purpose = TargetPurpose(), .range = TargetRange(own), .paths = own.files};
}

/// Returns the ranges of a document whose tokens are in one sample each.
static auto PiecesOf(Interval document, const PackRule& rule, bool packs, int64_t end_of_samples)
    -> std::vector<Interval> {
  std::vector<Interval> pieces;
  document.end = packs ? document.begin + PackedTokens(document.size(), rule) : std::min(document.end, end_of_samples);
  while (document.begin < document.end) {
    // Without packing, samples begin at multiples of seq.
    const int64_t next = packs ? document.begin + rule.seq : (document.begin / rule.seq + 1) * rule.seq;
    pieces.push_back({document.begin, std::min(document.end, next)});
    document.begin = pieces.back().end;
  }
  return pieces;
}

namespace {

/// Documents that are read as one list, and how they fill samples.
struct ListedDocuments {
  std::shared_ptr<const DocumentTable> table;
  Interval ids;
  PackRule rule;
  /// Samples of a stream.
  int64_t stream_samples = 0;
  std::optional<FileList> targets;
};

struct SourceLook {
  DocumentFacts facts;
  SampleTargets targets;
};

}  // namespace

static auto LookAt(const DataSource& data, const ListedDocuments& listed) -> ErrorOr<SourceLook> {
  const auto& [table, ids, rule, stream_samples, target_list] = listed;
  DocumentFacts facts{.empty = table->num_empty()};
  facts.counts = CountDocuments(*table, ids, data.packs() ? std::optional(rule) : std::nullopt);
  std::optional<TargetFiles> targets;
  if (target_list) {
    ASSIGN_OR_RETURN(targets, TargetFiles::Open(*target_list, data.format));
  }
  std::optional<SampleTargets> of_samples;
  if (data.packs()) {
    ASSIGN_OR_RETURN(auto packed, PackedSplit::Create(table, ids, rule));
    of_samples.emplace(std::move(packed), targets.has_value());
  } else {
    of_samples.emplace(rule, stream_samples);
  }
  facts.samples = of_samples->num_samples();
  // A token is the target of the place before it, so the first one of a document, or of a piece, is none.
  const auto count = [&](Interval tokens) -> ErrorOr<int64_t> {
    return targets ? targets->Count({tokens.begin + 1, tokens.end}) : tokens.size() - 1;
  };
  for (int64_t d = 0; d < facts.counts.documents; ++d) {
    const Interval document = Intersect(table->IdsOf(d), ids);
    ASSIGN_OR_RETURN(const int64_t all, count(document));
    int64_t kept = 0;
    for (const Interval piece : PiecesOf(document, rule, data.packs(), facts.samples * data.seq)) {
      int64_t of_piece = all;
      if (piece != document) {
        ASSIGN_OR_RETURN(of_piece, count(piece));
      }
      of_samples->Add(piece, of_piece);
      kept += of_piece;
      facts.tokens += piece.size();
      const auto places = static_cast<double>(piece.size());
      facts.attended_pairs += places * (places + 1) / 2;
    }
    facts.targets += kept;
    facts.with_targets += all > 0 ? 1 : 0;
    facts.lost += data.packs() && all > 0 && kept == 0 ? 1 : 0;
  }
  return SourceLook{std::move(facts), *std::move(of_samples)};
}

static auto FindTable(const DataSource& data, const FileList& list, int64_t document_end, int64_t threads)
    -> ErrorOr<std::shared_ptr<const DocumentTable>> {
  ASSIGN_OR_RETURN(auto found, DocumentTable::Find(list, data.format, document_end, threads));
  return std::make_shared<const DocumentTable>(std::move(found));
}

static auto LookAtSource(const Plan& plan, const TokenSource& source, int64_t threads) -> ErrorOr<SourceLook> {
  const DataSource& data = plan.data;
  ASSIGN_OR_RETURN(auto table, FindTable(data, TokenList(data, source), source.document_end, threads));
  const int64_t num_ids = table->num_ids();
  ASSIGN_OR_RETURN(auto look,
                   LookAt(data, {.table = std::move(table),
                                 .ids = {0, std::max<int64_t>(num_ids - data.eval_tokens, 0)},
                                 .rule = TrainRule(data, source),
                                 .stream_samples = CountSamples(data.seq, data.eval_tokens, num_ids).train_samples,
                                 .targets = TargetsOf(plan, source)}));
  look.facts.source = source.name;
  return look;
}

static auto LookAtEval(const DataSource& data, int64_t threads) -> ErrorOr<DocumentFacts> {
  ASSIGN_OR_RETURN(auto table, FindTable(data, EvalList(data), data.document_end, threads));
  const int64_t num_ids = table->num_ids();
  ASSIGN_OR_RETURN(auto look, LookAt(data, {.table = std::move(table),
                                            .ids = {0, num_ids},
                                            .rule = EvalRule(data, data.too_long),
                                            .stream_samples = CountSamples(data.seq, num_ids, num_ids).eval_samples,
                                            .targets = std::nullopt}));
  look.facts.is_eval = true;
  return look.facts;
}

auto IsQuickToLookAt(const Plan& plan) -> bool {
  const auto has_targets = [](const TokenSource& source) { return !source.targets.empty(); };
  const bool has_index = plan.data.format == TokenFormat::Megatron && plan.heads.empty() &&
                         std::ranges::none_of(plan.data.sources, has_targets);
  return has_index || BytesToScan(ListFiles(plan.data, plan.heads), plan.data.format) <= plan.run.scan_bytes;
}

auto LookAtDocuments(const Plan& plan, int64_t threads) -> ErrorOr<RunDocuments> {
  RunDocuments documents;
  if (!plan.data.splits_documents() || plan.data.is_synthetic()) {
    return documents;
  }
  std::vector<SampleTargets> targets;
  for (const TokenSource& source : plan.data.sources) {
    ASSIGN_OR_RETURN(auto look, LookAtSource(plan, source, threads));
    documents.sources.push_back(std::move(look.facts));
    targets.push_back(std::move(look.targets));
  }
  documents.per_step = CountStepTargets(plan, targets);
  if (plan.data.has_eval_files()) {
    ASSIGN_OR_RETURN(auto facts, LookAtEval(plan.data, threads));
    documents.sources.push_back(std::move(facts));
  }
  return documents;
}

auto CheckKeepsTargets(const DataSource& data, const DocumentFacts& facts) -> Status {
  const std::string samples = Counted(facts.samples, "sample");
  const std::string documents = Counted(facts.counts.documents, "document");
  const std::string_view or_lost = data.packs() ? ", or lost its targets to `data.too_long`" : "";
  FAIL_IF(facts.targets == 0 && facts.is_eval, ExitCode::RecipeRejected,
          "no place of the {} of `data.eval` has a target, so no evaluation would have a loss; each of its {} has one "
          "token{}; name other files, or leave `data.eval` out",
          samples, documents, or_lost);
  FAIL_IF(facts.targets == 0, ExitCode::RecipeRejected,
          "{}no place of the {} of an epoch has a target, so nothing would be learnt from its {}{}{}",
          OfSource(facts.source), samples, documents, data.packs() ? "; each has one token" : "", or_lost);
  const double share = static_cast<double>(facts.lost) / static_cast<double>(facts.with_targets);
  FAIL_IF(
      data.packs() && !facts.is_eval && share > data.max_lost, ExitCode::RecipeRejected,
      "{}{} of {} documents with targets ({:.3g} %) lose all of them to `data.too_long`, and `data.max_lost` is "
      "{:.3g} %; raise `model.seq` (the longest document has {} tokens), set `data.too_long` to \"split\", or raise "
      "`data.max_lost`",
      OfSource(facts.source), facts.lost, facts.with_targets, 100 * share, 100 * data.max_lost, facts.counts.longest);
  return Success{};
}

/// Returns "12 documents of 3 to 90 tokens (mean 31.5), and 1 without tokens".
static auto LengthsText(const DocumentCounts& counts, int64_t empty) -> std::string {
  const auto documents = static_cast<double>(std::max<int64_t>(counts.documents, 1));
  return fmt::format("{} of {} to {} tokens (mean {:.1f}){}", Counted(counts.documents, "document"), counts.shortest,
                     counts.longest, static_cast<double>(counts.tokens) / documents,
                     empty == 0 ? "" : fmt::format(", and {} without tokens", empty));
}

auto StreamDocumentsText(const Plan& plan, int64_t threads) -> ErrorOr<std::string> {
  const DataSource& data = plan.data;
  std::string text;
  for (const TokenSource& source : data.sources) {
    if (data.splits_documents() || source.files.empty() ||
        (data.format != TokenFormat::Megatron && source.document_end < 0)) {
      continue;
    }
    ASSIGN_OR_RETURN(const auto table,
                     DocumentTable::Find(TokenList(data, source), data.format, source.document_end, threads));
    text += fmt::format("documents: {}{}; `data.documents` is \"stream\", so samples run across them\n",
                        OfSource(source.name),
                        LengthsText(CountDocuments(table, {0, table.num_ids()}, std::nullopt), table.num_empty()));
  }
  return text;
}

/// Returns " (2.50 epochs in the run)" for packed samples, whose number the table of sources lacks before a look at
/// documents; nothing if the run takes none.
static auto EpochsText(const Plan& plan, size_t source, int64_t epoch_samples) -> std::string {
  int64_t samples = SamplesPerStep(plan) * plan.run.steps;
  if (plan.data.is_mixture()) {
    const auto run = CountRunSamples(plan.data, SamplesPerStep(plan), plan.run.schedule_steps());
    samples = run ? run->samples[source] : 0;
  }
  return samples == 0 || epoch_samples == 0
             ? ""
             : fmt::format(" ({:.2f} epochs in the run)",
                           static_cast<double>(samples) / static_cast<double>(epoch_samples));
}

auto PaddingShare(const DataSource& data, const DocumentFacts& facts) -> double {
  const int64_t places = std::max<int64_t>(facts.samples, 1) * data.seq;
  return 1 - static_cast<double>(facts.tokens) / static_cast<double>(places);
}

auto AttentionShare(const DataSource& data, const DocumentFacts& facts) -> double {
  const auto samples = static_cast<double>(std::max<int64_t>(facts.samples, 1));
  const auto seq = static_cast<double>(data.seq);
  return facts.attended_pairs / (samples * seq * (seq + 1) / 2);
}

/// Returns about how many bytes a rank takes for the places of the documents: a table of each source, and where they
/// are packed, the window that is packed and the one before.
static auto TableBytes(const DataSource& data, const RunDocuments& documents) -> Bytes {
  constexpr int64_t OfTable = 8;
  constexpr int64_t OfWindows = 24;
  int64_t bytes = 0;
  for (const DocumentFacts& of : documents.sources) {
    bytes += OfTable * of.counts.documents;
    bytes += data.packs() ? OfWindows * std::min(of.counts.documents, PackRule{}.window_documents) : 0;
  }
  return Bytes{bytes};
}

auto DocumentsText(const Plan& plan, const RunDocuments& documents) -> std::string {
  const DataSource& data = plan.data;
  std::string text;
  for (size_t i = 0; i < documents.sources.size(); ++i) {
    const DocumentFacts& of = documents.sources[i];
    const DocumentCounts& counts = of.counts;
    const auto samples = static_cast<double>(std::max<int64_t>(of.samples, 1));
    text +=
        fmt::format("documents: {}{}", of.is_eval ? "data.eval: " : OfSource(of.source), LengthsText(counts, of.empty));
    text += fmt::format("; {} in an {}{}, with {:.1f} targets each on average", Counted(of.samples, "sample"),
                        of.is_eval ? "evaluation" : "epoch",
                        data.packs() && !of.is_eval ? EpochsText(plan, i, of.samples) : "",
                        static_cast<double>(of.targets) / samples);
    if (data.packs()) {
      text += fmt::format("; {:.3g} % padding", 100 * PaddingShare(data, of));
      text += counts.cut + counts.dropped + counts.split == 0
                  ? ""
                  : fmt::format("; longer than a sample: {} cut, {} dropped, {} split, {} lost", counts.cut,
                                counts.dropped, counts.split, Counted(counts.lost_tokens, "token"));
    }
    text +=
        fmt::format("; attention takes {:.3g} % of what it would without documents", 100 * AttentionShare(data, of));
    text += of.lost == 0
                ? "\n"
                : fmt::format("; {} of {} documents with targets lose all of them\n", of.lost, of.with_targets);
  }
  if (const auto& steps = documents.per_step) {
    text += fmt::format(
        "documents: targets per step: {} at least, {:.1f} on average, {} at most; none in {} of the first {}\n",
        steps->least, steps->mean, steps->most, steps->without, Counted(steps->steps, "step"));
  }
  text += fmt::format("documents: about {} of each rank's memory, beside what is planned, have their places\n",
                      FormatMemory(TableBytes(data, documents)));
  return text;
}

}  // namespace shardc
