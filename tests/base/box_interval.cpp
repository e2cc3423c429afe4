// Intervals in boxes of a matrix, against a look at each element.
#include "compiler/mesh/box_interval.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <tuple>
#include <vector>

namespace shardc {
namespace {

/// The elements of the matrix that an interval of a box has, in order.
auto MatrixElementsOf(const BoxInterval& interval) -> std::vector<int64_t> {
  std::vector<int64_t> elements;
  for (int64_t at = interval.elements.begin; at < interval.elements.end; ++at) {
    const int64_t width = interval.columns.end - interval.columns.begin;
    elements.push_back(at / width * interval.row + interval.columns.begin + at % width);
  }
  return elements;
}

/// An interval in a box of a matrix of `rows` rows: of some columns, of all of them, or one that does not say how long
/// rows are.
auto RandomInterval(std::mt19937& random, int64_t rows, int64_t row) -> BoxInterval {
  const auto below = [&](int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); };
  const auto kind = below(4);
  Interval columns{0, row};
  if (kind >= 2) {
    columns.begin = below(row);
    columns.end = columns.begin + 1 + below(row - columns.begin);
  }
  const int64_t total = rows * columns.size();
  const int64_t begin = below(total + 1);
  const Interval elements{begin, begin + below(total - begin + 1)};
  return kind == 0 ? BoxInterval::Of(elements) : BoxInterval{.elements = elements, .row = row, .columns = columns};
}

auto TextOf(const BoxInterval& interval) -> std::string {
  return fmt::format("[{}, {}) of columns [{}, {}) of {}", interval.elements.begin, interval.elements.end,
                     interval.columns.begin, interval.columns.end, interval.row);
}

TEST(BoxInterval, MatrixIntervalsAreItsElementsInOrder) {
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    const auto rows = static_cast<int64_t>(1 + random() % 7);
    const auto row = static_cast<int64_t>(1 + random() % 9);
    const BoxInterval interval = RandomInterval(random, rows, row);
    std::vector<int64_t> found;
    ForEachMatrixInterval(interval, [&](int64_t begin, int64_t end, int64_t offset) {
      EXPECT_LT(begin, end) << TextOf(interval);
      EXPECT_EQ(offset, static_cast<int64_t>(found.size())) << TextOf(interval);
      for (int64_t element = begin; element < end; ++element) {
        found.push_back(element);
      }
    });
    ASSERT_EQ(found, MatrixElementsOf(interval)) << TextOf(interval);
  }
}

TEST(BoxInterval, MatrixIntervalsAreAsLongAsTheyCanBe) {
  const auto count = [](const BoxInterval& interval) {
    int64_t intervals = 0;
    ForEachMatrixInterval(interval, [&](int64_t, int64_t, int64_t) { ++intervals; });
    return intervals;
  };
  EXPECT_EQ(count(BoxInterval::Of({3, 100})), 1);
  EXPECT_EQ(count(BoxInterval::Of({3, 3})), 0);
  EXPECT_EQ(count({.elements = {3, 100}, .row = 10, .columns = {0, 10}}), 1);
  // Columns 4 and 5 of rows 1 to 3, the first but in part.
  EXPECT_EQ(count({.elements = {3, 8}, .row = 10, .columns = {4, 6}}), 3);
}

using Triple = std::tuple<int64_t, int64_t, int64_t>;

TEST(BoxInterval, CommonIntervalsAreTheCommonElements) {
  std::mt19937 random(2);
  int64_t num_common = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto rows = static_cast<int64_t>(1 + random() % 6);
    const auto row = static_cast<int64_t>(1 + random() % 8);
    const BoxInterval a = RandomInterval(random, rows, row);
    const BoxInterval b = RandomInterval(random, rows, row);
    const auto of_a = MatrixElementsOf(a);
    const auto of_b = MatrixElementsOf(b);
    // Both hold their elements in the matrix's order.
    std::vector<Triple> expected;
    for (size_t in_a = 0, in_b = 0; in_a < of_a.size() && in_b < of_b.size();) {
      if (of_a[in_a] == of_b[in_b]) {
        expected.emplace_back(in_a, in_b, of_a[in_a]);
        ++in_a;
        ++in_b;
      } else {
        ++(of_a[in_a] < of_b[in_b] ? in_a : in_b);
      }
    }
    std::vector<Triple> found;
    ForEachCommonInterval(a, b, [&](int64_t in_a, int64_t in_b, int64_t length) {
      EXPECT_GT(length, 0);
      for (int64_t k = 0; k < length; ++k) {
        ASSERT_LT(in_a + k, static_cast<int64_t>(of_a.size())) << TextOf(a) << " and " << TextOf(b);
        found.emplace_back(in_a + k, in_b + k, of_a[static_cast<size_t>(in_a + k)]);
      }
    });
    ASSERT_EQ(found, expected) << TextOf(a) << " and " << TextOf(b);
    num_common += expected.empty() ? 0 : 1;
  }
  EXPECT_GT(num_common, 4'000);
}

TEST(BoxInterval, PiecesAreAllOfIt) {
  std::mt19937 random(3);
  for (int i = 0; i < 2'000; ++i) {
    const BoxInterval interval =
        RandomInterval(random, static_cast<int64_t>(1 + random() % 6), static_cast<int64_t>(1 + random() % 8));
    const auto most = static_cast<int64_t>(1 + random() % 9);
    const int64_t width = interval.columns.size();
    int64_t next = 0;
    const Status all = ForEachPiece(interval, most, [&](const BoxInterval& piece, int64_t offset) -> Status {
      EXPECT_EQ(offset, next) << TextOf(interval);
      EXPECT_EQ(piece.elements.begin, interval.elements.begin + offset);
      EXPECT_LE(piece.elements.size(), interval.is_whole_rows() ? most : std::max(most, width));
      EXPECT_TRUE(interval.is_whole_rows() || piece.elements.end == interval.elements.end ||
                  piece.elements.end % width == 0);
      next += piece.elements.size();
      return Success{};
    });
    EXPECT_TRUE(all.ok());
    EXPECT_EQ(next, interval.elements.size());
  }
}

}  // namespace
}  // namespace shardc
