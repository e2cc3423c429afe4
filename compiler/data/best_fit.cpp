#include "compiler/data/best_fit.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

namespace {

constexpr uint32_t NoRow = std::numeric_limits<uint32_t>::max();

/// A set of numbers below a bound, as bits. Bit i of a level above says that word i of the level below has a bit.
class NumberSet {
 public:
  explicit NumberSet(int64_t bound) {
    size_t words = static_cast<size_t>(bound);
    do {
      words = (words + BitsOfWord - 1) / BitsOfWord;
      levels_.emplace_back(words, 0);
    } while (words > 1);
  }

  auto Insert(size_t number) -> void {
    for (std::vector<uint64_t>& level : levels_) {
      level[number / BitsOfWord] |= uint64_t{1} << number % BitsOfWord;
      number /= BitsOfWord;
    }
  }

  auto Erase(size_t number) -> void {
    for (std::vector<uint64_t>& level : levels_) {
      uint64_t& word = level[number / BitsOfWord];
      word &= ~(uint64_t{1} << number % BitsOfWord);
      if (word != 0) {
        return;
      }
      number /= BitsOfWord;
    }
  }

  /// Returns the least number that is at least `from`; -1 if the set has none.
  auto Next(size_t from) const -> int64_t {
    size_t height = 0;
    // Up, until a word has a bit at or after the place.
    for (; height < levels_.size(); ++height) {
      const std::vector<uint64_t>& level = levels_[height];
      if (from / BitsOfWord >= level.size()) {
        return -1;
      }
      if (const uint64_t bits = level[from / BitsOfWord] >> from % BitsOfWord; bits != 0) {
        from += static_cast<size_t>(std::countr_zero(bits));
        break;
      }
      from = from / BitsOfWord + 1;
    }
    if (height == levels_.size()) {
      return -1;
    }
    // Down, to the least bit of each.
    while (height-- > 0) {
      from = from * BitsOfWord + static_cast<size_t>(std::countr_zero(levels_[height][from]));
    }
    return static_cast<int64_t>(from);
  }

 private:
  static constexpr size_t BitsOfWord = 64;

  std::vector<std::vector<uint64_t>> levels_;
};

}  // namespace

auto BestFit::Add(int64_t tokens) -> void {
  CHECK(tokens >= 0 && rests_.size() < NoRow, "document {} of {} tokens", rests_.size(), tokens);
  if (const int64_t rows = tokens / seq_; rows > 0) {
    CHECK(rows < NoRow, "{} rows of one document", rows);
    wholes_.push_back({static_cast<uint32_t>(rests_.size()), static_cast<uint32_t>(rows)});
  }
  rests_.push_back(static_cast<uint32_t>(tokens % seq_));
}

/// Returns the documents with a rest, those of the longest rests first.
auto BestFit::SortedByLength() const -> std::vector<uint32_t> {
  // How many documents come before those of each length.
  std::vector<uint32_t> before(static_cast<size_t>(seq_) + 1, 0);
  for (const uint32_t rest : rests_) {
    ++before[rest];
  }
  before[0] = 0;
  uint32_t sum = 0;
  for (auto count = before.rbegin(); count != before.rend(); ++count) {
    sum += std::exchange(*count, sum);
  }
  std::vector<uint32_t> sorted(sum);
  for (size_t i = 0; i < rests_.size(); ++i) {
    if (rests_[i] > 0) {
      sorted[before[rests_[i]]++] = static_cast<uint32_t>(i);
    }
  }
  return sorted;
}

/// Returns the row of each document's rest, NoRow if it has no rest. Rows have the numbers in which they were opened.
auto BestFit::PlaceRests() const -> std::vector<uint32_t> {
  const std::vector<uint32_t> sorted = SortedByLength();
  std::vector<uint32_t> rows(rests_.size(), NoRow);
  // For each number of places left, the last of the rows that have it, and for each row the one before it.
  std::vector<uint32_t> last(static_cast<size_t>(seq_), NoRow);
  std::vector<uint32_t> before;
  NumberSet open(seq_);
  for (const uint32_t document : sorted) {
    const uint32_t tokens = rests_[document];
    const int64_t found = open.Next(tokens);
    auto left = static_cast<size_t>(seq_);
    auto row = static_cast<uint32_t>(before.size());
    if (found < 0) {
      before.push_back(NoRow);
    } else {
      left = static_cast<size_t>(found);
      row = last[left];
      last[left] = before[row];
      if (last[left] == NoRow) {
        open.Erase(left);
      }
    }
    rows[document] = row;
    left -= tokens;
    if (left > 0) {
      if (last[left] == NoRow) {
        open.Insert(left);
      }
      before[row] = std::exchange(last[left], row);
    }
  }
  return rows;
}

auto BestFit::Pack() -> void {
  std::vector<uint32_t> rows = PlaceRests();
  // Numbers by the order in which rows were opened become those by the first document of each.
  std::vector<uint32_t> numbers;
  auto whole = wholes_.begin();
  uint64_t num_rows = 0;
  uint64_t num_placed = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (whole != wholes_.end() && whole->document == i) {
      whole->first_row = static_cast<uint32_t>(num_rows);
      num_rows += whole->rows;
      num_placed += whole->rows;
      ++whole;
    }
    if (rows[i] != NoRow) {
      if (rows[i] >= numbers.size()) {
        numbers.resize(rows[i] + 1, NoRow);
      }
      uint32_t& number = numbers[rows[i]];
      number = number == NoRow ? static_cast<uint32_t>(num_rows++) : number;
      rows[i] = number;
      ++num_placed;
    }
  }
  CHECK(num_placed < NoRow, "{} rows of {} documents", num_rows, rows.size());
  // An assigned {} would keep the memory.
  numbers = std::vector<uint32_t>();
  rests_ = std::vector<uint32_t>();
  // Counts of documents, then where each row begins, and at last where it ends.
  ends_.assign(num_rows, 0);
  for (const uint32_t row : rows) {
    if (row != NoRow) {
      ++ends_[row];
    }
  }
  for (uint32_t& count : ends_) {
    // Rows of one long document alone have no rest.
    count = std::max<uint32_t>(count, 1);
  }
  std::exclusive_scan(ends_.begin(), ends_.end(), ends_.begin(), uint32_t{0});
  documents_.resize(num_placed);
  for (const Whole& document : wholes_) {
    for (uint32_t row = 0; row < document.rows; ++row) {
      documents_[ends_[document.first_row + row]++] = document.document;
    }
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != NoRow) {
      documents_[ends_[rows[i]]++] = static_cast<uint32_t>(i);
    }
  }
}

auto BestFit::Row(int64_t row) const -> std::span<const uint32_t> {
  CHECK(0 <= row && row < num_rows(), "row {} of {}", row, num_rows());
  const uint32_t begin = row == 0 ? 0 : ends_[static_cast<size_t>(row - 1)];
  return std::span(documents_).subspan(begin, ends_[static_cast<size_t>(row)] - begin);
}

auto BestFit::Skipped(int64_t row, uint32_t document) const -> int64_t {
  const auto whole = std::ranges::lower_bound(wholes_, document, {}, &Whole::document);
  if (whole == wholes_.end() || whole->document != document) {
    return 0;
  }
  // The rows that it fills, or that of what is left.
  const int64_t number = row - int64_t{whole->first_row};
  return seq_ * (0 <= number && number < int64_t{whole->rows} ? number : int64_t{whole->rows});
}

auto BestFitCount::Add(int64_t tokens) -> void {
  whole_rows_ += tokens / seq_;
  ++lengths_[static_cast<size_t>(tokens % seq_)];
}

auto BestFitCount::NumRows() const -> int64_t {
  std::vector<uint32_t> rows(static_cast<size_t>(seq_), 0);
  NumberSet open(seq_);
  int64_t num_rows = whole_rows_;
  const auto add = [&](int64_t left, int64_t count) {
    if (left > 0 && count > 0) {
      rows[static_cast<size_t>(left)] += static_cast<uint32_t>(count);
      open.Insert(static_cast<size_t>(left));
    }
  };
  for (int64_t tokens = seq_ - 1; tokens > 0; --tokens) {
    int64_t documents = lengths_[static_cast<size_t>(tokens)];
    while (documents > 0) {
      const int64_t found = open.Next(static_cast<size_t>(tokens));
      const int64_t left = found < 0 ? seq_ : found;
      const int64_t each = left / tokens;
      // A row that took one document takes the next ones too, while it can: none that can has less left.
      int64_t full = documents / each;
      int64_t rest = documents % each;
      if (found < 0) {
        num_rows += full + (rest > 0 ? 1 : 0);
      } else {
        uint32_t& there = rows[static_cast<size_t>(left)];
        if (full >= int64_t{there}) {
          full = there;
          rest = 0;
        }
        there -= static_cast<uint32_t>(full + (rest > 0 ? 1 : 0));
        if (there == 0) {
          open.Erase(static_cast<size_t>(left));
        }
      }
      documents -= full * each + rest;
      add(left - each * tokens, full);
      add(left - rest * tokens, rest > 0 ? 1 : 0);
    }
  }
  return num_rows;
}

}  // namespace shardc
