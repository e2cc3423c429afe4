// The arithmetic of ranks holds for any table of axes: here five axes and two parts, of which there are more than in
// schemas/axes.def. Each function is compared with a definition over all ranks.

#include "compiler/mesh/rank_grid.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace shardc {
namespace {

constexpr size_t NumWholes = 5;
constexpr size_t NumAll = 7;
using Grid = RankGrid<NumAll>;
/// Axis 5 is a part of axis 1, axis 6 of axis 4.
constexpr std::array<size_t, NumAll> Wholes{0, 1, 2, 3, 4, 1, 4};

const std::vector<Grid>& Grids() {
  static const std::vector<Grid> grids = [] {
    std::vector<Grid> all{
        {.wholes = Wholes, .sizes = {1, 1, 1, 1, 1, 1, 1}}, {.wholes = Wholes, .sizes = {2, 1, 3, 1, 2, 1, 1}},
        {.wholes = Wholes, .sizes = {2, 4, 1, 2, 3, 2, 3}}, {.wholes = Wholes, .sizes = {1, 6, 2, 1, 4, 3, 2}},
        {.wholes = Wholes, .sizes = {2, 4, 2, 3, 2, 4, 1}},
    };
    return all;
  }();
  return grids;
}

auto Has(uint32_t axes, size_t axis) -> bool { return (axes >> axis & 1U) != 0; }

/// The definition: two ranks are in one group if they differ along axes of the set only, and along the whole of a part
/// in it only within one group of neighbours.
auto AreInOneGroup(const Grid& grid, uint32_t axes, const Grid::Coordinates& a, const Grid::Coordinates& b) -> bool {
  for (size_t i = 0; i < NumWholes; ++i) {
    bool may_differ = Has(axes, i);
    for (size_t part = NumWholes; part < NumAll; ++part) {
      may_differ |= Wholes[part] == i && Has(axes, part) && a[i] / grid.sizes[part] == b[i] / grid.sizes[part];
    }
    if (a[i] != b[i] && !may_differ) {
      return false;
    }
  }
  return true;
}

TEST(RankGrid, CoordinatesCountLikeAnOdometer) {
  for (const Grid& grid : Grids()) {
    Grid::Coordinates expected{};
    for (int64_t rank = 0; rank < grid.NumRanks(); ++rank) {
      for (size_t part = NumWholes; part < NumAll; ++part) {
        expected[part] = expected[Wholes[part]] % grid.sizes[part];
      }
      EXPECT_EQ(grid.CoordinatesOf(rank), expected) << rank;
      EXPECT_EQ(grid.RankOf(expected), rank);
      for (size_t i = NumWholes; i-- > 0 && ++expected[i] == grid.sizes[i];) {
        expected[i] = 0;
      }
    }
  }
}

TEST(RankGrid, GroupsAreThoseOfTheDefinition) {
  for (const Grid& grid : Grids()) {
    for (uint32_t axes = 0; axes < 1U << NumAll; ++axes) {
      std::map<std::vector<int64_t>, int64_t> numbers;
      for (int64_t rank = 0; rank < grid.NumRanks(); ++rank) {
        std::vector<int64_t> expected;
        for (int64_t other = 0; other < grid.NumRanks(); ++other) {
          if (AreInOneGroup(grid, axes, grid.CoordinatesOf(rank), grid.CoordinatesOf(other))) {
            expected.push_back(other);
          }
        }
        const std::vector<int64_t> group = grid.Group(axes, rank);
        ASSERT_EQ(group, expected) << axes << " of " << rank;
        EXPECT_EQ(grid.GroupSize(axes), static_cast<int64_t>(group.size()));
        EXPECT_EQ(group.at(static_cast<size_t>(grid.IndexIn(axes, rank))), rank);
        // Groups are numbered in the order of their first ranks, which is that in which they are met here.
        const auto [found, fresh] = numbers.try_emplace(group, static_cast<int64_t>(numbers.size()));
        EXPECT_EQ(grid.GroupNumber(axes, rank), found->second) << axes << " of " << rank;
      }
    }
  }
}

/// A set and what is spread of it have the same groups, and nothing can be left out of what is spread.
TEST(RankGrid, WhatIsSpreadIsTheLeastSetWithTheSameGroups) {
  for (const Grid& grid : Grids()) {
    for (uint32_t axes = 0; axes < 1U << NumAll; ++axes) {
      const uint32_t spread = grid.Spread(axes);
      EXPECT_EQ(spread & ~axes, 0U);
      EXPECT_EQ(grid.Group(spread, 0), grid.Group(axes, 0));
      for (size_t i = 0; i < NumAll; ++i) {
        if (Has(spread, i)) {
          EXPECT_NE(grid.Group(spread & ~(1U << i), 0), grid.Group(axes, 0)) << axes << " without " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace shardc
