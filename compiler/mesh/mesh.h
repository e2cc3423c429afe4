// The mesh: named axes, ranks by coordinates, and the arithmetic of equal slices. The axes are the rows of
// schemas/axes.def; rank_grid.h has the arithmetic.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/enum.h"
#include "compiler/base/error_or.h"
#include "compiler/mesh/rank_grid.h"

namespace shardc {

/// The axes that make up the mesh, in the order of ranks, and then those that are parts of one.
enum class Axis : uint8_t {
#define AXIS(Name, ...) Name,
#define PART(Name, ...) Name,
#include "schemas/axes.def"
};
constexpr int NumMeshAxes = 0
#define AXIS(...) +1
#include "schemas/axes.def"
    ;
constexpr int NumAxes = NumMeshAxes
#define PART(...) +1
#include "schemas/axes.def"
    ;
template <>
struct EnumNames<Axis> {
  static constexpr std::array<std::string_view, NumAxes> names{
#define AXIS(Name, name, ...) #name,
#define PART(Name, name, ...) #name,
#include "schemas/axes.def"
  };
};

/// The axis that this one is a part of, or itself.
constexpr std::array<size_t, NumAxes> AxisWholes{
#define AXIS(Name, ...) static_cast<size_t>(Axis::Name),
#define PART(Name, name, Whole) static_cast<size_t>(Axis::Whole),
#include "schemas/axes.def"
};
constexpr auto WholeOf(Axis axis) -> Axis { return static_cast<Axis>(AxisWholes[static_cast<size_t>(axis)]); }
static_assert(
    [] {
      for (size_t i = 0; i < NumAxes; ++i) {
        for (size_t j = NumMeshAxes; j < i; ++j) {
          if (AxisWholes[i] == AxisWholes[j]) {
            return false;
          }
        }
        if ((AxisWholes[i] == i) != (i < NumMeshAxes) || AxisWholes[i] >= NumMeshAxes) {
          return false;
        }
      }
      return true;
    }(),
    "parts stand after the axes in schemas/axes.def, and an axis has one at most");

/// A set of axes; a collective over it joins the ranks that differ in these axes only. Printed as "dp+tp", or "none".
struct AxisSet {
  uint8_t bits = 0;

  static constexpr auto Of(Axis axis) -> AxisSet { return {static_cast<uint8_t>(1U << static_cast<unsigned>(axis))}; }
  /// Those that make up the mesh: all ranks.
  static constexpr auto All() -> AxisSet { return {static_cast<uint8_t>((1U << NumMeshAxes) - 1)}; }
  constexpr auto Has(Axis axis) const -> bool { return (bits & Of(axis).bits) != 0; }
  constexpr auto Without(AxisSet other) const -> AxisSet { return {static_cast<uint8_t>(bits & ~other.bits)}; }
  friend constexpr auto operator|(AxisSet a, AxisSet b) -> AxisSet { return {static_cast<uint8_t>(a.bits | b.bits)}; }
  friend constexpr auto operator&(AxisSet a, AxisSet b) -> AxisSet { return {static_cast<uint8_t>(a.bits & b.bits)}; }
  friend constexpr auto operator==(AxisSet, AxisSet) -> bool = default;
};
static_assert(NumAxes < 8, "AxisSet::bits, and loops over all sets");

/// How many sets of axes there are: the size of a table that AxisSet::bits indexes.
constexpr size_t NumAxisSets = size_t{1} << NumAxes;
template <class T>
using ByAxisSet = std::array<T, NumAxisSets>;

auto ToText(AxisSet axes) -> std::string;
auto AxisSetFromText(std::string_view text) -> ErrorOr<AxisSet>;

/// What ranks along an axis share, each with others of it: the samples of a step, the elements of the state, the rows
/// or columns of each matrix.
enum class Shared : uint8_t { Samples, State, Matrices };
/// The axes whose ranks share it.
constexpr auto AxesSharing(Shared what) -> AxisSet {
  AxisSet axes;
  using enum Shared;
#define AXIS(Name, name, stream, doc, ...)                         \
  for (const Shared shared : {__VA_ARGS__}) {                      \
    axes = shared == what ? axes | AxisSet::Of(Axis::Name) : axes; \
  }
#include "schemas/axes.def"
  return axes;
}
/// These axes, what they are parts of, and the parts of all of them: ranks that differ along an axis may differ along
/// its part, and the other way round.
auto WithRelated(AxisSet axes) -> AxisSet;

/// Consecutive elements of a vector, bytes, or ranks: from `begin` to before `end`.
struct Interval {
  int64_t begin = 0;
  int64_t end = 0;

  auto size() const -> int64_t { return end > begin ? end - begin : 0; }
  auto empty() const -> bool { return end <= begin; }
  friend auto operator==(const Interval&, const Interval&) -> bool = default;
};

/// The one along a part follows from that along its whole.
using Coordinates = std::array<int64_t, NumAxes>;

struct Mesh {
  std::array<int64_t, NumMeshAxes> sizes = {
#define AXIS(...) 1,
#include "schemas/axes.def"
  };
  /// Of each part of an axis the ranks of a group, which divide the size of the axis. 1: it is not cut.
  std::array<int64_t, NumAxes - NumMeshAxes> parts = {
#define PART(...) 1,
#include "schemas/axes.def"
  };
  /// Hosts that the ranks lie on, in rank order, as many on each: hosts divides num_ranks().
  int64_t hosts = 1;

  constexpr auto size(Axis axis) const -> int64_t {
    const auto i = static_cast<size_t>(axis);
    return i < NumMeshAxes ? sizes[i] : parts[i - NumMeshAxes];
  }
  auto set_size(Axis axis, int64_t size) -> void {
    const auto i = static_cast<size_t>(axis);
    (i < NumMeshAxes ? sizes[i] : parts[i - NumMeshAxes]) = size;
  }
  /// Ranks of a group over `axes`.
  auto size(AxisSet axes) const -> int64_t { return Grid().GroupSize(axes.bits); }
  auto num_ranks() const -> int64_t { return Grid().NumRanks(); }
  auto CoordinatesOf(int64_t rank) const -> Coordinates;
  /// By the coordinates along the axes that make up the mesh.
  auto RankOf(const Coordinates& coordinates) const -> int64_t { return Grid().RankOf(coordinates); }
  /// The index of `rank` in its group over `axes`.
  auto IndexIn(AxisSet axes, int64_t rank) const -> int64_t;
  /// The ranks of the group over `axes` that `rank` belongs to, in rank order.
  auto Group(AxisSet axes, int64_t rank) const -> std::vector<int64_t>;
  /// The number of that group among those over `axes`, in the order of their first ranks.
  auto GroupNumber(AxisSet axes, int64_t rank) const -> int64_t;
  auto ranks_per_host() const -> int64_t { return num_ranks() / hosts; }
  auto HostOf(int64_t rank) const -> int64_t;
  /// From the first rank of the host to before the first of the next one.
  auto RanksOfHost(int64_t host) const -> Interval;
  /// Does each group, over whatever axes, have as many ranks on each of its hosts?
  auto HostsAreBoxes() const -> bool { return Grid().BlocksAreBoxes(ranks_per_host()); }
  /// The mesh of the ranks of one host: the n-th rank of each host is its rank n. Requires: HostsAreBoxes().
  auto OfOneHost() const -> Mesh;
  /// Ranks of a group over `axes` that lie on one host. Requires: HostsAreBoxes().
  auto LocalSize(AxisSet axes) const -> int64_t { return Grid().OfBlock(ranks_per_host()).GroupSize(axes.bits); }
  /// Hosts that a group over `axes` lies on. Requires: HostsAreBoxes().
  auto HostsOf(AxisSet axes) const -> int64_t { return size(axes) / LocalSize(axes); }
  friend auto operator==(const Mesh&, const Mesh&) -> bool = default;

 private:
  friend auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet;
  constexpr auto Grid() const -> RankGrid<NumAxes> {
    RankGrid<NumAxes> grid{.wholes = AxisWholes, .sizes = {}};
    for (size_t i = 0; i < NumAxes; ++i) {
      grid.sizes[i] = size(static_cast<Axis>(i));
    }
    return grid;
  }
};

/// Those of `axes` that have more than one rank, without a part of one that is there: an axis of one rank takes part in
/// nothing, and all of dp has dp_inner in it.
auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet;

auto Intersect(const Interval& a, const Interval& b) -> Interval;

/// The elements of a vector that member `index` of `degree` owns: equal contiguous slices.
/// Requires: length is a multiple of degree (sub-vectors are padded to it), 0 <= index < degree.
/// Source: equal contiguous intervals, as ncclReduceScatter takes them.
auto OwnedSlice(int64_t length, int64_t degree, int64_t index) -> Interval;

}  // namespace shardc
