// The mesh: three named axes, ranks by coordinates, and the arithmetic of equal slices.
//
// Rank order is row-major over (replicate, dp, tp): tp neighbours are neighbours in rank, as their traffic is densest.
// A fourth name, dp_inner, is a part of dp: its ranks are cut into groups of neighbours, of one host for instance, and
// a collective over dp_inner joins those of one group.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/enum.h"
#include "compiler/base/error_or.h"

namespace shardc {

enum class Axis : uint8_t { Replicate, Dp, Tp, DpInner };
constexpr int NumAxes = 4;
/// Those before dp_inner make up the mesh.
constexpr int NumMeshAxes = 3;
template <>
struct EnumNames<Axis> {
  static constexpr std::array<std::string_view, NumAxes> names{"replicate", "dp", "tp", "dp_inner"};
};

/// A set of axes; a collective over it joins the ranks that differ in these axes only. Printed as "dp+tp", or "none".
struct AxisSet {
  uint8_t bits = 0;

  static constexpr auto Of(Axis axis) -> AxisSet { return {static_cast<uint8_t>(1U << static_cast<unsigned>(axis))}; }
  /// Those that make up the mesh: all ranks.
  static constexpr auto All() -> AxisSet { return {7}; }
  constexpr auto Has(Axis axis) const -> bool { return (bits & Of(axis).bits) != 0; }
  constexpr auto Without(AxisSet other) const -> AxisSet { return {static_cast<uint8_t>(bits & ~other.bits)}; }
  friend constexpr auto operator|(AxisSet a, AxisSet b) -> AxisSet { return {static_cast<uint8_t>(a.bits | b.bits)}; }
  friend constexpr auto operator==(AxisSet, AxisSet) -> bool = default;
};

auto ToText(AxisSet axes) -> std::string;
auto AxisSetFromText(std::string_view text) -> ErrorOr<AxisSet>;

/// The one along dp_inner follows from that along dp.
using Coordinates = std::array<int64_t, NumAxes>;

struct Mesh {
  std::array<int64_t, NumMeshAxes> sizes{1, 1, 1};
  /// Ranks of a group of dp_inner; divides the size of dp. 1: dp is not cut.
  int64_t dp_inner = 1;

  auto size(Axis axis) const -> int64_t { return axis == Axis::DpInner ? dp_inner : sizes[static_cast<size_t>(axis)]; }
  /// Ranks of a group over `axes`.
  auto size(AxisSet axes) const -> int64_t;
  auto num_ranks() const -> int64_t { return sizes[0] * sizes[1] * sizes[2]; }
  auto CoordinatesOf(int64_t rank) const -> Coordinates;
  /// By the coordinates along the axes that make up the mesh.
  auto RankOf(const Coordinates& coordinates) const -> int64_t;
  /// The place of `rank` in its group over `axes`.
  auto IndexIn(AxisSet axes, int64_t rank) const -> int64_t;
  /// The ranks of the group over `axes` that `rank` belongs to, in rank order.
  auto Group(AxisSet axes, int64_t rank) const -> std::vector<int64_t>;
  /// The number of that group among those over `axes`, in the order of their first ranks.
  auto GroupNumber(AxisSet axes, int64_t rank) const -> int64_t;
  friend auto operator==(const Mesh&, const Mesh&) -> bool = default;
};

/// Those of `axes` that have more than one rank, without a part of one that is there: an axis of one rank takes part in
/// nothing, and all of dp has dp_inner in it.
auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet;

/// A half-open stretch of elements.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  auto size() const -> int64_t { return end > begin ? end - begin : 0; }
  auto empty() const -> bool { return end <= begin; }
  friend auto operator==(const Interval&, const Interval&) -> bool = default;
};

auto Intersect(const Interval& a, const Interval& b) -> Interval;

/// The elements of a vector that member `index` of `degree` owns: equal contiguous slices.
/// Requires: length is a multiple of degree (sub-vectors are padded to it), 0 <= index < degree.
/// Source: equal contiguous pieces, as ncclReduceScatter takes them.
auto OwnedSlice(int64_t length, int64_t degree, int64_t index) -> Interval;

}  // namespace shardc
