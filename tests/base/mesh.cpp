// Ranks, groups and slices of a mesh.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/mesh/mesh.h"

namespace shardc {
namespace {

constexpr Mesh Meshes[] = {
    {.sizes = {1, 1, 1}},
    {.sizes = {1, 4, 1}},
    {.sizes = {2, 3, 1}},
    {.sizes = {1, 2, 2}},
    {.sizes = {2, 3, 4}},
    {.sizes = {1, 4, 1}, .parts = {2}},
    {.sizes = {1, 4, 1}, .parts = {4}},
    {.sizes = {2, 6, 3}, .parts = {3}},
};

constexpr AxisSet Sets[] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};
constexpr AxisSet DpInner = AxisSet::Of(Axis::DpInner);

TEST(Mesh, RankOrderIsRowMajor) {
  const Mesh mesh{.sizes = {2, 3, 4}};
  EXPECT_EQ(mesh.num_ranks(), 24);
  EXPECT_EQ(mesh.RankOf({0, 0, 1}), 1);
  EXPECT_EQ(mesh.RankOf({0, 1, 0}), 4);
  EXPECT_EQ(mesh.RankOf({1, 0, 0}), 12);
  EXPECT_EQ(mesh.CoordinatesOf(23), (Coordinates{1, 2, 3}));
  EXPECT_EQ(mesh.size(Axis::Dp), 3);
  EXPECT_EQ(mesh.size(AxisSet::Of(Axis::Replicate) | AxisSet::Of(Axis::Tp)), 8);
  EXPECT_EQ(mesh.size(AxisSet{}), 1);
}

TEST(Mesh, RanksAndCoordinatesAreInverse) {
  for (const Mesh& mesh : Meshes) {
    for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
      EXPECT_EQ(mesh.RankOf(mesh.CoordinatesOf(rank)), rank);
    }
  }
}

struct GroupCase {
  AxisSet axes;
  int64_t rank;
  std::vector<int64_t> ranks;
};

TEST(Mesh, GroupCases) {
  const Mesh mesh{.sizes = {2, 3, 4}};
  const GroupCase cases[] = {
      {AxisSet{}, 5, {5}},
      {AxisSet::Of(Axis::Tp), 5, {4, 5, 6, 7}},
      {AxisSet::Of(Axis::Dp), 5, {1, 5, 9}},
      {AxisSet::Of(Axis::Replicate), 5, {5, 17}},
      {AxisSet::Of(Axis::Replicate) | AxisSet::Of(Axis::Dp), 5, {1, 5, 9, 13, 17, 21}},
  };
  for (const GroupCase& row : cases) {
    EXPECT_EQ(mesh.Group(row.axes, row.rank), row.ranks) << ToText(row.axes);
  }
}

TEST(Mesh, PartsOfDp) {
  // Ranks of the first replica, by coordinates along dp and tp: (0, 0) 0, (0, 1) 1, (1, 0) 2, ...
  const Mesh mesh{.sizes = {2, 6, 2}, .parts = {3}};
  EXPECT_EQ(mesh.num_ranks(), 24);
  EXPECT_EQ(mesh.CoordinatesOf(9), (Coordinates{0, 4, 1, 1}));
  const GroupCase cases[] = {
      {DpInner, 0, {0, 2, 4}},
      {DpInner, 9, {7, 9, 11}},
      {DpInner, 21, {19, 21, 23}},
      {DpInner | AxisSet::Of(Axis::Tp), 9, {6, 7, 8, 9, 10, 11}},
      {DpInner | AxisSet::Of(Axis::Replicate), 9, {7, 9, 11, 19, 21, 23}},
      {DpInner | AxisSet::Of(Axis::Dp), 9, {1, 3, 5, 7, 9, 11}},
  };
  for (const GroupCase& row : cases) {
    EXPECT_EQ(mesh.Group(row.axes, row.rank), row.ranks) << ToText(row.axes);
    EXPECT_EQ(mesh.size(row.axes), static_cast<int64_t>(row.ranks.size())) << ToText(row.axes);
  }
  EXPECT_EQ(Spread(mesh, DpInner | AxisSet::Of(Axis::Dp)), AxisSet::Of(Axis::Dp));
  EXPECT_EQ(Spread(mesh, AxisSet::All()), AxisSet::All());
}

/// The part that a rank keeps of a vector is made of slices that its group's ranks own, and theirs are the whole.
TEST(Mesh, SlicesOfDpLieInThoseOfItsParts) {
  const AxisSet dp = AxisSet::Of(Axis::Dp);
  for (const Mesh& mesh : Meshes) {
    const int64_t length = 12 * mesh.size(dp);
    for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
      int64_t kept = 0;
      for (const int64_t peer : mesh.Group(DpInner, rank)) {
        const Interval part = OwnedSlice(length, mesh.size(DpInner), mesh.IndexIn(DpInner, peer));
        EXPECT_EQ(part.begin, kept);
        kept = part.end;
      }
      EXPECT_EQ(kept, length);
      EXPECT_EQ(mesh.IndexIn(DpInner, rank), mesh.IndexIn(dp, rank) % mesh.size(Axis::DpInner));
    }
  }
}

TEST(Mesh, GroupsPartitionTheRanks) {
  for (const Mesh& mesh : Meshes) {
    for (const AxisSet axes : Sets) {
      std::set<std::vector<int64_t>> groups;
      std::map<int64_t, int64_t> first_rank;
      size_t num_members = 0;
      for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
        const std::vector<int64_t> group = mesh.Group(axes, rank);
        EXPECT_EQ(static_cast<int64_t>(group.size()), mesh.size(axes));
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        EXPECT_EQ(std::count(group.begin(), group.end(), rank), 1);
        EXPECT_EQ(group.at(static_cast<size_t>(mesh.IndexIn(axes, rank))), rank);
        first_rank.try_emplace(mesh.GroupNumber(axes, rank), group.front());
        EXPECT_EQ(first_rank.at(mesh.GroupNumber(axes, rank)), group.front());
        num_members += groups.insert(group).second ? group.size() : 0;
      }
      EXPECT_EQ(num_members, static_cast<size_t>(mesh.num_ranks()));
      // Numbers run from 0, in the order of first ranks.
      EXPECT_EQ(first_rank.size(), groups.size());
      EXPECT_EQ(first_rank.rbegin()->first, static_cast<int64_t>(groups.size()) - 1);
      EXPECT_TRUE(std::ranges::is_sorted(first_rank, {}, [](const auto& row) { return row.second; }));
    }
  }
}

TEST(Mesh, RowsSayWhatRanksShare) {
  EXPECT_EQ(AxesSharing(Shared::Samples), AxisSet::Of(Axis::Replicate) | AxisSet::Of(Axis::Dp));
  EXPECT_EQ(AxesSharing(Shared::State), AxisSet::Of(Axis::Dp));
  EXPECT_EQ(AxesSharing(Shared::Matrices), AxisSet::Of(Axis::Tp));
  for (int i = 0; i < NumMeshAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    EXPECT_EQ(WholeOf(axis), axis);
    EXPECT_TRUE(AxisSet::All().Has(axis));
  }
  EXPECT_EQ(WholeOf(Axis::DpInner), Axis::Dp);
  EXPECT_EQ(AxisSet::All().Without(DpInner), AxisSet::All());
  const AxisSet dp = AxisSet::Of(Axis::Dp);
  const AxisSet tp = AxisSet::Of(Axis::Tp);
  EXPECT_EQ(WithRelated(dp), dp | DpInner);
  EXPECT_EQ(WithRelated(DpInner | tp), dp | DpInner | tp);
  EXPECT_EQ(WithRelated(tp), tp);
}

TEST(AxisSet, TextReadsBack) {
  for (const AxisSet axes : Sets) {
    if (axes != AxisSet{}) {
      const auto read = AxisSetFromText(ToText(axes));
      ASSERT_TRUE(read.ok()) << ToText(axes);
      EXPECT_EQ(*read, axes);
    }
  }
  EXPECT_EQ(ToText(AxisSet::All()), "replicate+dp+tp");
  for (const std::string_view text : {"", "dp+", "+dp", "pp", "dp tp"}) {
    EXPECT_FALSE(AxisSetFromText(text).ok()) << text;
  }
}

TEST(Hosts, HaveAsManyNeighbouringRanksEach) {
  const Mesh mesh{.sizes = {2, 4, 3}, .hosts = 6};
  EXPECT_EQ(mesh.ranks_per_host(), 4);
  EXPECT_EQ(mesh.RanksOfHost(0), (Interval{0, 4}));
  EXPECT_EQ(mesh.RanksOfHost(5), (Interval{20, 24}));
  for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
    const Interval ranks = mesh.RanksOfHost(mesh.HostOf(rank));
    EXPECT_TRUE(ranks.begin <= rank && rank < ranks.end) << rank;
  }
  EXPECT_EQ((Mesh{.sizes = {1, 8, 1}}.RanksOfHost(0)), (Interval{0, 8}));
}

TEST(OwnedSlice, SlicesAreEqualAndCoverTheVectorInOrder) {
  EXPECT_EQ(OwnedSlice(12, 4, 0), (Interval{0, 3}));
  EXPECT_EQ(OwnedSlice(12, 4, 3), (Interval{9, 12}));
  for (const int64_t degree : {1, 2, 3, 7, 512}) {
    const int64_t length = degree * 128;
    int64_t end = 0;
    for (int64_t i = 0; i < degree; ++i) {
      const Interval slice = OwnedSlice(length, degree, i);
      EXPECT_EQ(slice.begin, end);
      EXPECT_EQ(slice.size(), 128);
      end = slice.end;
    }
    EXPECT_EQ(end, length);
  }
}

TEST(OwnedSliceDeathTest, UnevenSlicesAreABug) {
  EXPECT_EXIT(OwnedSlice(10, 4, 0), testing::ExitedWithCode(1), "length 10 over degree 4");
  EXPECT_EXIT(OwnedSlice(12, 4, 4), testing::ExitedWithCode(1), "slice 4 of 4");
}

struct IntersectCase {
  Interval a;
  Interval b;
  Interval both;
};

constexpr IntersectCase IntersectCases[] = {
    {{0, 10}, {3, 5}, {3, 5}}, {{0, 5}, {3, 10}, {3, 5}}, {{0, 5}, {0, 5}, {0, 5}},
    {{0, 3}, {3, 5}, {3, 3}},  {{0, 3}, {4, 5}, {4, 4}},  {{2, 2}, {0, 5}, {2, 2}},
};

TEST(Intersect, Cases) {
  for (const IntersectCase& row : IntersectCases) {
    EXPECT_EQ(Intersect(row.a, row.b), row.both);
    EXPECT_EQ(Intersect(row.b, row.a), row.both);
  }
  EXPECT_TRUE(Intersect({0, 3}, {4, 5}).empty());
  EXPECT_EQ((Interval{5, 3}.size()), 0);
}

// Against groups listed rank by rank.
TEST(Mesh, PartsOfGroupsOnAHostAreTheGroupsOfItsMesh) {
  int64_t num_boxes = 0;
  int64_t num_uneven = 0;
  for (const Mesh& sizes : {Mesh{.sizes = {2, 4, 3}}, Mesh{.sizes = {1, 6, 2}}, Mesh{.sizes = {3, 2, 2}},
                            Mesh{.sizes = {1, 8, 2}, .parts = {4}}, Mesh{.sizes = {2, 6, 1}, .parts = {3}}}) {
    for (int64_t hosts = 1; hosts <= sizes.num_ranks(); ++hosts) {
      Mesh mesh = sizes;
      mesh.hosts = hosts;
      if (mesh.num_ranks() % hosts != 0) {
        continue;
      }
      bool is_even = true;
      for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
        const AxisSet axes{bits};
        for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
          std::map<int64_t, int64_t> ranks_on;
          for (const int64_t member : mesh.Group(axes, rank)) {
            ++ranks_on[mesh.HostOf(member)];
          }
          is_even = is_even && std::ranges::all_of(
                                   ranks_on, [&](const auto& on) { return on.second == ranks_on.begin()->second; });
        }
      }
      ++(mesh.HostsAreBoxes() ? num_boxes : num_uneven);
      if (!mesh.HostsAreBoxes()) {
        continue;
      }
      EXPECT_TRUE(is_even) << fmt::format("{} ranks on {} hosts", mesh.num_ranks(), hosts);
      const Mesh local = mesh.OfOneHost();
      ASSERT_EQ(local.num_ranks(), mesh.ranks_per_host());
      for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
        const AxisSet axes{bits};
        EXPECT_EQ(mesh.LocalSize(axes), local.size(axes));
        for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
          const int64_t first = mesh.RanksOfHost(mesh.HostOf(rank)).begin;
          std::vector<int64_t> here;
          for (const int64_t member : mesh.Group(axes, rank)) {
            if (mesh.HostOf(member) == mesh.HostOf(rank)) {
              here.push_back(member - first);
            }
          }
          EXPECT_EQ(here, local.Group(axes, rank - first)) << ToText(axes);
          // Hosts follow one another in the order of the group.
          EXPECT_EQ(mesh.IndexIn(axes, rank) % mesh.LocalSize(axes), local.IndexIn(axes, rank - first));
        }
      }
    }
  }
  EXPECT_GT(num_boxes, 20);
  EXPECT_GT(num_uneven, 5);
}

}  // namespace
}  // namespace shardc
