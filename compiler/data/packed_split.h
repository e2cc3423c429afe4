// The documents of a split in rows of whole documents (`data.pack` = best-fit): which tokens are in each row of each
// epoch.
//
// The documents of an epoch, in its order, are packed in windows of 1,000,000, so that memory is bounded; best_fit.h
// packs a window. Order "shuffled": documents by a keyed permutation, and the rows of a window by another one
// (shuffle.h). Order "sequential": documents as they are in the files, and rows by their first document.
//
// Rows are a function of the lengths of the documents, the seed and the epoch: the same on every mesh and after every
// restart. How many rows an epoch has depends on its windows. They are counted as they are reached, about 0.05 s for
// each window, so a restart counts those from the first epoch on; if all documents are in one window, or their order is
// the same in each epoch, it counts one epoch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/data/best_fit.h"
#include "compiler/data/document_table.h"

namespace shardc {

/// Tokens of one document that follow one another in a row.
struct DocumentPiece {
  /// Ids of the stream.
  Interval ids;
  /// Number of its first token in the document.
  int64_t position = 0;

  friend auto operator==(const DocumentPiece&, const DocumentPiece&) -> bool = default;
};

struct PackRule {
  int64_t seq = 0;
  TooLong too_long = TooLong::Refuse;
  SampleOrder order = SampleOrder::Shuffled;
  uint64_t seed = 0;
  int64_t window_documents = 1'000'000;
};

/// Returns how many tokens of a document of so many are packed.
auto PackedTokens(int64_t tokens, const PackRule& rule) -> int64_t;

/// Counts of the documents of a split, and of what packing does to them.
struct DocumentCounts {
  int64_t documents = 0;
  int64_t tokens = 0;
  int64_t shortest = 0;
  int64_t longest = 0;
  int64_t cut = 0;
  int64_t dropped = 0;
  int64_t split = 0;
  /// Tokens of documents that are cut or dropped, which no row has.
  int64_t lost_tokens = 0;
};

/// Counts the documents that have ids in a range; those at its borders have their ids in it alone. `rule`: unset if
/// they are not packed.
auto CountDocuments(const DocumentTable& table, Interval ids, const std::optional<PackRule>& rule) -> DocumentCounts;

/// Not safe to use from two threads at once.
class PackedSplit {
 public:
  /// Takes the documents of `ids`, the split. A document that its border cuts is, in each split, a document of the ids
  /// that are there. Errors: ExitCode::RecipeRejected: a document of more than seq tokens, if they are refused; no row.
  static auto Create(std::shared_ptr<const DocumentTable> table, Interval ids, const PackRule& rule)
      -> ErrorOr<PackedSplit>;

  /// Counts the rows of an epoch. Cost: those of the epochs before are counted too.
  auto RowsOfEpoch(int64_t epoch) -> int64_t;
  /// Returns the pieces of a row, by its running number over all epochs: at most seq tokens.
  /// Cost: the window is packed, about 0.1 s, unless it is one of the two that were used last.
  auto Row(int64_t index) -> std::vector<DocumentPiece>;

 private:
  struct Window {
    int64_t epoch = 0;
    int64_t number = 0;
    BestFit rows;
  };
  struct Place {
    int64_t epoch = 0;
    int64_t window = 0;
    /// Number of the row among those of the window, in the order of the epoch.
    int64_t row = 0;
  };

  PackedSplit(std::shared_ptr<const DocumentTable> table, Interval ids, const PackRule& rule);
  auto num_windows() const -> int64_t;
  auto DocumentsOf(int64_t window) const -> Interval;
  /// Returns the ids of a document that are packed, by its number in the order of an epoch.
  auto PackedIds(int64_t epoch, int64_t document) const -> Interval;
  auto CountNextWindow() -> void;
  /// Counts windows until the row is in one of them.
  auto PlaceOf(int64_t row) -> Place;
  auto Packed(int64_t epoch, int64_t window) -> const BestFit&;
  auto num_counted() const -> int64_t { return std::ssize(row_ends_); }

  std::shared_ptr<const DocumentTable> table_;
  Interval ids_;
  PackRule rule_;
  /// Documents of the table that have ids in the split.
  Interval documents_;
  /// True if each epoch has the windows of the first one, as far as lengths go.
  bool repeats_ = false;
  /// Rows up to the end of each window that was counted, over all epochs; of the first epoch alone if it repeats.
  std::vector<int64_t> row_ends_;
  /// Windows that were packed last, the last one first.
  std::vector<Window> packed_;
};

}  // namespace shardc
