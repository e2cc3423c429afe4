// Best fit decreasing against a plain implementation of it, which looks at every row for each document.
#include "compiler/data/best_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace shardc {
namespace {

/// A document in a row: its number, and its tokens in rows before.
using Placed = std::pair<uint32_t, int64_t>;
using Rows = std::vector<std::vector<Placed>>;

auto RowsOf(const BestFit& packed) -> Rows {
  Rows rows;
  for (int64_t row = 0; row < packed.num_rows(); ++row) {
    rows.emplace_back();
    for (const uint32_t document : packed.Row(row)) {
      rows.back().emplace_back(document, packed.Skipped(row, document));
    }
  }
  return rows;
}

auto PlainBestFit(const std::vector<int64_t>& lengths, int64_t seq) -> Rows {
  struct Open {
    std::vector<Placed> documents;
    int64_t left = 0;
    int64_t changed = 0;
  };
  std::vector<Open> rows;
  std::vector<uint32_t> order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  for (const uint32_t document : order) {
    for (int64_t begin = 0; lengths[document] - begin >= seq; begin += seq) {
      rows.push_back({{{document, begin}}, 0, 0});
    }
  }
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return lengths[a] % seq > lengths[b] % seq; });
  int64_t now = 0;
  for (const uint32_t document : order) {
    const int64_t tokens = lengths[document] % seq;
    if (tokens == 0) {
      continue;
    }
    Open* best = nullptr;
    for (Open& row : rows) {
      // Of rows with as many places, the one that came to have them last.
      const bool is_better =
          best == nullptr || row.left < best->left || (row.left == best->left && row.changed > best->changed);
      if (row.left >= tokens && is_better) {
        best = &row;
      }
    }
    if (best == nullptr) {
      best = &rows.emplace_back(Open{{}, seq, 0});
    }
    best->documents.emplace_back(document, lengths[document] - tokens);
    best->left -= tokens;
    best->changed = ++now;
  }
  Rows result;
  for (Open& row : rows) {
    std::ranges::sort(row.documents);
    result.push_back(row.documents);
  }
  std::ranges::sort(result);
  return result;
}

auto PackLengths(const std::vector<int64_t>& lengths, int64_t seq) -> BestFit {
  BestFit packed(seq);
  for (const int64_t length : lengths) {
    packed.Add(length);
  }
  packed.Pack();
  return packed;
}

auto CountRows(const std::vector<int64_t>& lengths, int64_t seq) -> int64_t {
  BestFitCount count(seq);
  for (const int64_t length : lengths) {
    count.Add(length);
  }
  return count.NumRows();
}

TEST(BestFit, FillsRowsOfKnownExample) {
  // 20 tokens are two whole rows and a rest of 4, to which 3 is the closest.
  const BestFit packed = PackLengths({20, 5, 3, 8, 2, 0}, 8);
  EXPECT_EQ(RowsOf(packed), (Rows{{{0, 0}}, {{0, 8}}, {{0, 16}, {4, 0}}, {{1, 0}, {2, 0}}, {{3, 0}}}));
}

TEST(BestFit, EqualsPlainImplementation) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 600; ++round) {
    // Rooms of more than 64 and of more than 4,096 places are sets of two and of three levels.
    const int64_t seq = std::vector<int64_t>{1, 2, 7, 64, 65, 100, 5000}[random() % 7];
    const int64_t longest = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(round % 3 == 0 ? 3 * seq : seq));
    std::vector<int64_t> lengths(random() % 200);
    for (int64_t& length : lengths) {
      length = static_cast<int64_t>(random() % static_cast<uint64_t>(longest + 1));
    }
    const Rows expected = PlainBestFit(lengths, seq);
    ASSERT_EQ(RowsOf(PackLengths(lengths, seq)), expected) << "round " << round << ", seq " << seq;
    ASSERT_EQ(CountRows(lengths, seq), std::ssize(expected)) << "round " << round << ", seq " << seq;
  }
}

TEST(BestFit, LeavesLittlePadding) {
  // Log-normal lengths with mean seq / 8 and sigma 1, as texts have them.
  constexpr int64_t Seq = 4096;
  std::mt19937_64 random(5);
  std::lognormal_distribution<double> lengths(std::log(Seq / 8.0) - 0.5, 1);
  BestFitCount count(Seq);
  int64_t tokens = 0;
  for (int i = 0; i < 100'000; ++i) {
    const auto length = std::clamp<int64_t>(std::llround(lengths(random)), 1, Seq);
    count.Add(length);
    tokens += length;
  }
  const int64_t least = (tokens + Seq - 1) / Seq;
  EXPECT_LE(static_cast<double>(count.NumRows()), 1.001 * static_cast<double>(least));
}

}  // namespace
}  // namespace shardc
