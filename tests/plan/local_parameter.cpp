// What ranks hold of a parameter: every element lies at one place.
#include "compiler/plan/local_parameter.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace shardc {
namespace {

struct CutCase {
  Dims shape;
  int64_t dim = -1;
  int64_t tp = 1;
  Dims local;
  /// Elements at each coordinate.
  std::vector<int64_t> held;
};

const CutCase CutCases[] = {
    {{8, 6}, 0, 2, {4, 6}, {24, 24}},
    {{8, 6}, 1, 2, {8, 3}, {24, 24}},
    {{257, 3}, 0, 2, {129, 3}, {387, 384}},
    {{9, 2}, 0, 4, {3, 2}, {6, 6, 6, 0}},
    {{5, 4}, 0, 4, {2, 4}, {8, 8, 4, 0}},
    {{3, 12}, 1, 4, {3, 3}, {9, 9, 9, 9}},
    {{1, 8}, 1, 8, {1, 1}, {1, 1, 1, 1, 1, 1, 1, 1}},
    // One row: its columns are dealt out as rows are, and the last coordinates may hold fewer.
    {{1, 7}, 1, 4, {1, 2}, {2, 2, 2, 1}},
    {{5, 2, 3}, 0, 2, {3, 2, 3}, {18, 12}},
    {{3, 4, 2}, 1, 2, {3, 2, 2}, {12, 12}},
    {{2, 3, 6}, 2, 3, {2, 3, 2}, {12, 12, 12}},
    {{1, 5, 2}, 1, 2, {1, 3, 2}, {6, 4}},
    // On every coordinate, as is what no tp cuts.
    {{7}, -1, 3, {7}, {7, 7, 7}},
    {{8, 6}, -1, 2, {8, 6}, {48, 48}},
    {{8, 6}, 0, 1, {8, 6}, {48}},
    {{8, 6}, 1, 1, {8, 6}, {48}},
};

auto ParameterOf(const CutCase& row) -> Parameter {
  Parameter parameter;
  parameter.name = "w";
  parameter.shape = row.shape;
  if (row.dim >= 0) {
    SetPlacement(AxisSet::Of(Axis::Tp), Placement::Shard(static_cast<int>(row.dim)), parameter.placement);
  }
  return parameter;
}

TEST(LocalParameter, RoomAndElements) {
  for (const CutCase& row : CutCases) {
    const Mesh mesh{.sizes = {2, 3, row.tp}};
    const Parameter parameter = ParameterOf(row);
    EXPECT_EQ(LocalShape(parameter, mesh), row.local);
    for (int64_t tp = 0; tp < row.tp; ++tp) {
      EXPECT_EQ(LocalElements(parameter, mesh, tp), row.held[static_cast<size_t>(tp)]) << tp;
    }
  }
}

// Ranks that hold the same of a sub-vector are those along its copy axes, and no others.
TEST(SubVector, CopyAxesJoinTheRanksThatHoldTheSame) {
  for (const Mesh& mesh :
       {Mesh{.sizes = {2, 3, 2}}, Mesh{.sizes = {1, 4, 1}, .parts = {2}}, Mesh{.sizes = {3, 1, 2}}}) {
    const AxisSet sharing = Spread(mesh, AxesSharing(Shared::Matrices));
    for (const AxisSet cut : {AxisSet{}, sharing}) {
      const SubVector sub_vector{.cut = cut, .length = 12 * SubVectorAlignment};
      const auto held = [&](int64_t rank) {
        return std::pair(OwnedSlice(sub_vector, mesh, rank).begin, mesh.IndexIn(cut, rank));
      };
      const AxisSet copies = CopyAxes(sub_vector, mesh);
      for (int64_t rank = 0; rank < mesh.num_ranks(); ++rank) {
        std::vector<int64_t> same;
        for (int64_t other = 0; other < mesh.num_ranks(); ++other) {
          if (held(other) == held(rank)) {
            same.push_back(other);
          }
        }
        EXPECT_EQ(mesh.Group(copies, rank), same) << ToText(copies) << " of " << rank;
      }
      EXPECT_EQ(IsWhole(sub_vector, mesh), sharing != AxisSet{} && cut == AxisSet{});
    }
  }
}

/// Where the elements [begin, end) of a coordinate are in the logical tensor, in order.
auto LogicalElements(const Parameter& parameter, const Mesh& mesh, int64_t tp, Interval elements)
    -> std::vector<int64_t> {
  std::vector<int64_t> all;
  ForEachMatrixInterval(LogicalInterval(parameter, mesh, tp, elements),
                        [&](int64_t begin, int64_t end, int64_t offset) {
                          EXPECT_EQ(offset, static_cast<int64_t>(all.size()));
                          for (int64_t i = begin; i < end; ++i) {
                            all.push_back(i);
                          }
                        });
  return all;
}

TEST(LocalParameter, EveryElementLiesAtOnePlace) {
  for (const CutCase& row : CutCases) {
    const Mesh mesh{.sizes = {1, 1, row.tp}};
    const Parameter parameter = ParameterOf(row);
    std::vector<int64_t> times(static_cast<size_t>(parameter.num_elements()), 0);
    for (int64_t tp = 0; tp < row.tp; ++tp) {
      const int64_t held = LocalElements(parameter, mesh, tp);
      const auto all = LogicalElements(parameter, mesh, tp, {0, held});
      ASSERT_EQ(static_cast<int64_t>(all.size()), held);
      for (const int64_t element : all) {
        ++times[static_cast<size_t>(element)];
      }
      // A part of what is held is that part of the whole, as slices of dp have it.
      for (int64_t begin = 0; begin <= held; ++begin) {
        for (const int64_t end : {begin, std::min(held, begin + 5), held}) {
          ASSERT_EQ(LogicalElements(parameter, mesh, tp, {begin, end}),
                    std::vector<int64_t>(all.begin() + begin, all.begin() + end));
        }
      }
    }
    const bool is_cut = row.dim >= 0 && row.tp > 1;
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(times[i], is_cut ? 1 : row.tp) << i;
    }
  }
}

// The place is the one that a look at row and column gives.
TEST(LocalParameter, RowsAndColumnsAreThoseOfTheCoordinate) {
  for (const CutCase& row : CutCases) {
    if (row.dim < 0 || row.shape.size() != 2) {
      continue;
    }
    const Mesh mesh{.sizes = {1, 1, row.tp}};
    const Parameter parameter = ParameterOf(row);
    for (int64_t tp = 0; tp < row.tp; ++tp) {
      const auto all = LogicalElements(parameter, mesh, tp, {0, LocalElements(parameter, mesh, tp)});
      for (size_t i = 0; i < all.size(); ++i) {
        const int64_t local_row = static_cast<int64_t>(i) / row.local[1];
        const int64_t local_column = static_cast<int64_t>(i) % row.local[1];
        const int64_t r = local_row + (row.dim == 0 ? tp * row.local[0] : 0);
        const int64_t c = local_column + (row.dim == 1 ? tp * row.local[1] : 0);
        EXPECT_EQ(all[i], r * row.shape[1] + c);
      }
    }
  }
}

// The place is the one that a look at each index gives, whatever dim is cut.
TEST(LocalParameter, IndicesAreThoseOfTheCoordinate) {
  for (const CutCase& row : CutCases) {
    if (row.dim < 0) {
      continue;
    }
    const Mesh mesh{.sizes = {1, 1, row.tp}};
    const Parameter parameter = ParameterOf(row);
    for (int64_t tp = 0; tp < row.tp; ++tp) {
      const auto all = LogicalElements(parameter, mesh, tp, {0, LocalElements(parameter, mesh, tp)});
      for (size_t i = 0; i < all.size(); ++i) {
        int64_t rest = static_cast<int64_t>(i);
        int64_t place = 0;
        int64_t stride = 1;
        for (size_t dim = row.shape.size(); dim-- > 0;) {
          int64_t index = rest % row.local[dim];
          rest /= row.local[dim];
          index += static_cast<int64_t>(dim) == row.dim ? tp * row.local[dim] : 0;
          place += index * stride;
          stride *= row.shape[dim];
        }
        EXPECT_EQ(all[i], place) << ToText(row.shape) << " " << row.dim << " at " << i;
      }
    }
  }
}

TEST(LocalParameterDeathTest, PaddingBetweenElementsIsRefused) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  for (const CutCase& row : {CutCase{.shape = {3, 5}, .dim = 1, .tp = 2}, CutCase{.shape = {3, 5}, .dim = 2, .tp = 2},
                             CutCase{.shape = {2, 3, 7}, .dim = 2, .tp = 2}}) {
    const Mesh mesh{.sizes = {1, 1, row.tp}};
    EXPECT_EXIT(LogicalInterval(ParameterOf(row), mesh, 0, {0, 1}), testing::ExitedWithCode(1), "is cut");
  }
}

}  // namespace
}  // namespace shardc
