#include "runtime/init/draw_launches.h"

#include <gtest/gtest.h>

#include <vector>

#include "compiler/expr/random.h"

namespace shardc {
namespace {

/// Returns the elements of a parameter that the launches keep, in the order in which they are stored; -1 where none is.
auto KeptBy(const std::vector<DrawLaunch>& launches, int64_t size, int64_t most) -> std::vector<int64_t> {
  std::vector<int64_t> kept(static_cast<size_t>(size), -1);
  for (const DrawLaunch& launch : launches) {
    EXPECT_EQ(launch.first % ElementsPerBlock, 0);
    EXPECT_EQ(launch.made % ElementsPerBlock, 0);
    EXPECT_LE(launch.made, most);
    EXPECT_GT(launch.kept, 0);
    for (int64_t i = 0; i < launch.kept; ++i) {
      const auto q = static_cast<uint32_t>(i) + launch.column;
      const int64_t at = launch.base + q / launch.width * launch.row + q % launch.width;
      EXPECT_GE(at, 0);
      EXPECT_LT(at, launch.made);
      EXPECT_EQ(kept.at(static_cast<size_t>(launch.offset + i)), -1) << "stored twice";
      kept[static_cast<size_t>(launch.offset + i)] = launch.first + at;
    }
  }
  return kept;
}

auto ElementsOf(const BoxInterval& interval) -> std::vector<int64_t> {
  std::vector<int64_t> elements;
  ForEachMatrixInterval(interval, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) {
      elements.push_back(i);
    }
  });
  return elements;
}

constexpr int64_t Sizes[] = {4, 8, 12, 64, 4096};

TEST(DrawLaunches, KeepWholeRows) {
  for (const int64_t most : Sizes) {
    for (const Interval& elements : {Interval{0, 64}, {0, 1}, {3, 4}, {5, 41}, {128, 640}, {7, 7}}) {
      for (const int64_t row : {1, 16}) {
        const BoxInterval interval{.elements = elements, .row = row, .columns = {0, row}};
        EXPECT_EQ(KeptBy(DrawLaunches(interval, most), elements.size(), most), ElementsOf(interval))
            << elements.begin << " to " << elements.end << ", " << most << " at once";
      }
    }
  }
}

TEST(DrawLaunches, KeepColumnsOfRows) {
  for (const int64_t most : Sizes) {
    for (const int64_t row : {6, 16, 33, 200}) {
      for (const Interval& columns : {Interval{0, row / 2}, {row / 2, row}, {1, 2}, {row - 1, row}}) {
        const int64_t width = columns.size();
        for (const Interval& elements : {Interval{0, 20 * width}, {width, 2 * width}, {1, 3 * width + 1}, {2, 3}}) {
          const BoxInterval interval{.elements = elements, .row = row, .columns = columns};
          EXPECT_EQ(KeptBy(DrawLaunches(interval, most), elements.size(), most), ElementsOf(interval))
              << elements.begin << " to " << elements.end << " of columns " << columns.begin << " to " << columns.end
              << " of " << row << ", " << most << " at once";
        }
      }
    }
  }
}

TEST(DrawLaunches, AreFewAndSkipWideGaps) {
  // As many at once as fit.
  EXPECT_EQ(DrawLaunches(BoxInterval::Of({0, 1 << 20}), 1 << 18).size(), 4U);
  EXPECT_EQ(DrawLaunches({.elements = {0, 100 * 8}, .row = 16, .columns = {8, 16}}, 1 << 18).size(), 1U);
  // Not what lies between the columns of rows of which less than one fits.
  const auto launches = DrawLaunches({.elements = {0, 8}, .row = 10'000, .columns = {400, 404}}, 64);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[1].first, 10'400);
  EXPECT_EQ(launches[1].made, 4);
}

TEST(DrawLaunches, TakeLargeParameters) {
  constexpr int64_t Begin = (int64_t{1} << 40) + 5;
  const auto launches = DrawLaunches(BoxInterval::Of({Begin, Begin + 3}), 64);
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].first, Begin - 1);
  EXPECT_EQ(launches[0].made, 4);
  EXPECT_EQ(launches[0].base, 1);
}

}  // namespace
}  // namespace shardc
