// Stretches of the columns of a matrix, against a look at each element.
#include "compiler/mesh/box_range.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <random>
#include <tuple>
#include <vector>

namespace shardc {
namespace {

/// Element of the matrix that lies at each place of a range, in order.
auto MatrixElementsOf(const BoxRange& range) -> std::vector<int64_t> {
  std::vector<int64_t> elements;
  for (int64_t at = range.elements.begin; at < range.elements.end; ++at) {
    const int64_t width = range.columns.end - range.columns.begin;
    elements.push_back(at / width * range.row + range.columns.begin + at % width);
  }
  return elements;
}

/// A range of a matrix of `rows` rows: of some columns, of all of them, or of elements without a word of rows.
auto RandomRange(std::mt19937& random, int64_t rows, int64_t row) -> BoxRange {
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
  return kind == 0 ? BoxRange::Of(elements) : BoxRange{.elements = elements, .row = row, .columns = columns};
}

auto TextOf(const BoxRange& range) -> std::string {
  return fmt::format("[{}, {}) of columns [{}, {}) of {}", range.elements.begin, range.elements.end,
                     range.columns.begin, range.columns.end, range.row);
}

TEST(BoxRange, RunsAreItsElementsInOrder) {
  std::mt19937 random(1);
  for (int i = 0; i < 5'000; ++i) {
    const auto rows = static_cast<int64_t>(1 + random() % 7);
    const auto row = static_cast<int64_t>(1 + random() % 9);
    const BoxRange range = RandomRange(random, rows, row);
    std::vector<int64_t> found;
    ForEachRun(range, [&](int64_t begin, int64_t end, int64_t offset) {
      EXPECT_LT(begin, end) << TextOf(range);
      EXPECT_EQ(offset, static_cast<int64_t>(found.size())) << TextOf(range);
      for (int64_t element = begin; element < end; ++element) {
        found.push_back(element);
      }
    });
    ASSERT_EQ(found, MatrixElementsOf(range)) << TextOf(range);
  }
}

TEST(BoxRange, RunsAreAsLongAsTheyCanBe) {
  const auto count = [](const BoxRange& range) {
    int64_t runs = 0;
    ForEachRun(range, [&](int64_t, int64_t, int64_t) { ++runs; });
    return runs;
  };
  EXPECT_EQ(count(BoxRange::Of({3, 100})), 1);
  EXPECT_EQ(count(BoxRange::Of({3, 3})), 0);
  EXPECT_EQ(count({.elements = {3, 100}, .row = 10, .columns = {0, 10}}), 1);
  // Columns 4 and 5 of rows 1 to 3, the first but in part.
  EXPECT_EQ(count({.elements = {3, 8}, .row = 10, .columns = {4, 6}}), 3);
}

using Triple = std::tuple<int64_t, int64_t, int64_t>;

TEST(BoxRange, CommonRunsAreTheCommonElements) {
  std::mt19937 random(2);
  int64_t num_common = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto rows = static_cast<int64_t>(1 + random() % 6);
    const auto row = static_cast<int64_t>(1 + random() % 8);
    const BoxRange a = RandomRange(random, rows, row);
    const BoxRange b = RandomRange(random, rows, row);
    const auto of_a = MatrixElementsOf(a);
    const auto of_b = MatrixElementsOf(b);
    // Both ranges hold their elements in the matrix's order.
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
    ForEachCommonRun(a, b, [&](int64_t in_a, int64_t in_b, int64_t length) {
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

}  // namespace
}  // namespace shardc
