// Whole documents in rows of seq places, by best fit decreasing: the longest first, each into the row that has the
// least places left of those that can take it, or into a new row.
//
//   1. Of a document of more than seq tokens, each seq tokens are a row of their own; what is left is placed as others.
//   2. Lengths are sorted by counting.
//   3. Rows are kept by the places that they have left, and a bit set over 0 ... seq finds the next number of places
//      that a row has: constant time for each document.
//   4. Rows are numbered by their first document, and a row has its documents in their order.
//
// The rows are a function of the lengths and their order alone. While it packs, it takes 12 bytes for each document and
// 4 for each row, besides 4 for each place of a row; afterwards 4 for each document and row.
// Source: D. S. Johnson, Near-optimal bin packing algorithms, 1973.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shardc {

class BestFit {
 public:
  /// Requires: 0 < seq < 2^31.
  explicit BestFit(int64_t seq) : seq_(seq) {}

  /// Reserves memory for so many documents.
  auto Reserve(int64_t documents) -> void { rests_.reserve(static_cast<size_t>(documents)); }
  /// Adds the next document; one of 0 tokens takes no place. Requires: fewer than 2^32 documents and rows.
  auto Add(int64_t tokens) -> void;
  /// Fills the rows. Requires: called once, after the last document.
  auto Pack() -> void;

  auto num_rows() const -> int64_t { return std::ssize(ends_); }
  /// Returns the documents of a row, in their order. Requires: Pack; 0 <= row < num_rows().
  auto Row(int64_t row) const -> std::span<const uint32_t>;
  /// Returns how many tokens of a document of this row are in rows of their own before it: a multiple of seq, 0 of a
  /// document of less than seq tokens.
  auto Skipped(int64_t row, uint32_t document) const -> int64_t;

 private:
  /// Rows that a long document fills.
  struct Whole {
    uint32_t document = 0;
    uint32_t rows = 0;
    uint32_t first_row = 0;
  };

  auto SortedByLength() const -> std::vector<uint32_t>;
  auto PlaceRests() const -> std::vector<uint32_t>;

  int64_t seq_;
  /// For each document, its tokens beyond those of whole rows.
  std::vector<uint32_t> rests_;
  std::vector<Whole> wholes_;
  /// Documents of the rows, one row after another, and where each row ends in them.
  std::vector<uint32_t> documents_;
  std::vector<uint32_t> ends_;
};

/// Counts the rows that BestFit fills without filling them, from how many documents have each length.
class BestFitCount {
 public:
  /// Requires: 0 < seq < 2^31.
  explicit BestFitCount(int64_t seq) : seq_(seq), lengths_(static_cast<size_t>(seq)) {}

  auto Add(int64_t tokens) -> void;
  /// Cost: about the number of different lengths, times a few.
  auto NumRows() const -> int64_t;

 private:
  int64_t seq_;
  int64_t whole_rows_ = 0;
  std::vector<uint32_t> lengths_;
};

}  // namespace shardc
