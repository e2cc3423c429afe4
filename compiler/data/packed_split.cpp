#include "compiler/data/packed_split.h"

#include <algorithm>

#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/units.h"
#include "compiler/data/shuffle.h"

namespace shardc {

/// Returns the documents that have ids in a range.
static auto DocumentsIn(const DocumentTable& table, Interval ids) -> Interval {
  return ids.size() <= 0 ? Interval{} : Interval{table.DocumentOf(ids.begin), table.DocumentOf(ids.end - 1) + 1};
}

auto PackedTokens(int64_t tokens, const PackRule& rule) -> int64_t {
  if (tokens <= rule.seq) {
    return tokens;
  }
  switch (rule.too_long) {
    case TooLong::Refuse:
    case TooLong::Split: return tokens;
    case TooLong::Cut: return rule.seq;
    case TooLong::Drop: return 0;
  }
  CHECK(false, "too_long {}", static_cast<int>(rule.too_long));
}

auto CountDocuments(const DocumentTable& table, Interval ids, const std::optional<PackRule>& rule) -> DocumentCounts {
  DocumentCounts counts;
  const Interval documents = DocumentsIn(table, ids);
  counts.documents = documents.size();
  counts.tokens = std::max<int64_t>(ids.size(), 0);
  for (int64_t d = documents.begin; d < documents.end; ++d) {
    const int64_t tokens = Intersect(table.IdsOf(d), ids).size();
    counts.shortest = d == documents.begin ? tokens : std::min(counts.shortest, tokens);
    counts.longest = std::max(counts.longest, tokens);
    if (!rule || tokens <= rule->seq) {
      continue;
    }
    const int64_t packed = PackedTokens(tokens, *rule);
    counts.lost_tokens += tokens - packed;
    ++(packed == 0 ? counts.dropped : packed < tokens ? counts.cut : counts.split);
  }
  return counts;
}

PackedSplit::PackedSplit(std::shared_ptr<const DocumentTable> table, Interval ids, const PackRule& rule)
    : table_(std::move(table)), ids_(ids), rule_(rule), documents_(DocumentsIn(*table_, ids)) {
  repeats_ = rule.order != SampleOrder::Shuffled || num_windows() == 1;
}

auto PackedSplit::Create(std::shared_ptr<const DocumentTable> table, Interval ids, const PackRule& rule)
    -> ErrorOr<PackedSplit> {
  CHECK(rule.seq > 0 && rule.window_documents > 0, "seq {}, windows of {}", rule.seq, rule.window_documents);
  PackedSplit split(std::move(table), ids, rule);
  bool has_row = false;
  for (int64_t d = split.documents_.begin; d < split.documents_.end; ++d) {
    const int64_t tokens = Intersect(split.table_->IdsOf(d), ids).size();
    FAIL_IF(tokens > rule.seq && rule.too_long == TooLong::Refuse, ExitCode::RecipeRejected,
            "token file {} has {} tokens, and a sample {} (`model.seq`); set `data.too_long` to \"cut\", \"drop\" or "
            "\"split\", or `model.seq` to {} or more",
            split.table_->NameOf(d), tokens, rule.seq, tokens);
    has_row = has_row || PackedTokens(tokens, rule) > 0;
  }
  FAIL_IF(!has_row, ExitCode::RecipeRejected,
          "no document is left to pack: {} of more than {} tokens (`model.seq`) each, and `data.too_long` is \"drop\"; "
          "set it to \"cut\" or \"split\", or raise `model.seq`",
          Counted(split.documents_.size(), "document"), rule.seq);
  return split;
}

auto PackedSplit::num_windows() const -> int64_t { return CeilDiv(documents_.size(), rule_.window_documents); }

auto PackedSplit::DocumentsOf(int64_t window) const -> Interval {
  const int64_t begin = window * rule_.window_documents;
  return {begin, std::min(begin + rule_.window_documents, documents_.size())};
}

auto PackedSplit::PackedIds(int64_t epoch, int64_t document) const -> Interval {
  const bool is_shuffled = rule_.order == SampleOrder::Shuffled;
  const int64_t number = is_shuffled ? ShuffledIndex(document, documents_.size(), rule_.seed, epoch) : document;
  const Interval ids = Intersect(table_->IdsOf(documents_.begin + number), ids_);
  return {ids.begin, ids.begin + PackedTokens(ids.size(), rule_)};
}

auto PackedSplit::CountNextWindow() -> void {
  BestFitCount count(rule_.seq);
  const Interval documents = DocumentsOf(num_counted() % num_windows());
  for (int64_t d = documents.begin; d < documents.end; ++d) {
    count.Add(PackedIds(num_counted() / num_windows(), d).size());
  }
  row_ends_.push_back((row_ends_.empty() ? 0 : row_ends_.back()) + count.NumRows());
}

auto PackedSplit::PlaceOf(int64_t row) -> Place {
  const auto repeats_from_here = [&] { return repeats_ && num_counted() == num_windows(); };
  while ((row_ends_.empty() || row_ends_.back() <= row) && !repeats_from_here()) {
    CountNextWindow();
  }
  int64_t epoch = 0;
  if (repeats_from_here()) {
    epoch = row / row_ends_.back();
    row %= row_ends_.back();
  }
  const int64_t window = std::ranges::upper_bound(row_ends_, row) - row_ends_.begin();
  return {.epoch = epoch + window / num_windows(),
          .window = window % num_windows(),
          .row = row - (window == 0 ? 0 : row_ends_[static_cast<size_t>(window - 1)])};
}

auto PackedSplit::RowsOfEpoch(int64_t epoch) -> int64_t {
  CHECK(epoch >= 0, "epoch {}", epoch);
  const int64_t begin = repeats_ ? 0 : epoch * num_windows();
  while (num_counted() < begin + num_windows()) {
    CountNextWindow();
  }
  return row_ends_[static_cast<size_t>(begin + num_windows() - 1)] -
         (begin == 0 ? 0 : row_ends_[static_cast<size_t>(begin - 1)]);
}

auto PackedSplit::Packed(int64_t epoch, int64_t window) -> const BestFit& {
  const auto found = std::ranges::find_if(
      packed_, [&](const Window& packed) { return packed.epoch == epoch && packed.number == window; });
  if (found != packed_.end()) {
    std::rotate(packed_.begin(), found, found + 1);
    return packed_.front().rows;
  }
  // A step may have samples of two windows, in any order.
  constexpr size_t MostPacked = 2;
  if (packed_.size() == MostPacked) {
    packed_.pop_back();
  }
  BestFit rows(rule_.seq);
  const Interval documents = DocumentsOf(window);
  rows.Reserve(documents.size());
  for (int64_t d = documents.begin; d < documents.end; ++d) {
    rows.Add(PackedIds(epoch, d).size());
  }
  rows.Pack();
  packed_.insert(packed_.begin(), {.epoch = epoch, .number = window, .rows = std::move(rows)});
  return packed_.front().rows;
}

auto PackedSplit::Row(int64_t index) -> std::vector<DocumentPiece> {
  CHECK(index >= 0, "row {}", index);
  const auto [epoch, window, number] = PlaceOf(index);
  const BestFit& packed = Packed(epoch, window);
  int64_t row = number;
  if (rule_.order == SampleOrder::Shuffled) {
    const uint64_t seed = DerivedSeed(rule_.seed, fmt::format("rows of window {}", window));
    row = ShuffledIndex(number, packed.num_rows(), seed, epoch);
  }
  std::vector<DocumentPiece> pieces;
  for (const uint32_t document : packed.Row(row)) {
    const Interval ids = PackedIds(epoch, DocumentsOf(window).begin + document);
    const int64_t skipped = packed.Skipped(row, document);
    const int64_t begin = ids.begin + skipped;
    pieces.push_back({.ids = {begin, std::min(ids.end, begin + rule_.seq)}, .position = skipped});
  }
  return pieces;
}

}  // namespace shardc
