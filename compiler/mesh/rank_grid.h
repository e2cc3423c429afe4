// The arithmetic of ranks on a grid of any number of axes: Mesh is one with the axes of schemas/axes.def.
//
// Rank order is row-major: the ranks along the last axis are neighbours. An axis may be a part of another one: groups
// of neighbours along it, all of one size. A set of axes is a number with a bit for each; the group over a set joins
// the ranks that differ in the axes of the set only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardc {

template <size_t N>
struct RankGrid {
  /// One for each axis; that along a part follows from that along its whole.
  using Coordinates = std::array<int64_t, N>;

  /// The axis that each is a part of, or itself. Parts come last.
  std::array<size_t, N> wholes;
  /// Ranks along each; of a part, ranks of a group, which divides the size of the whole.
  std::array<int64_t, N> sizes;

  constexpr auto IsPart(size_t axis) const -> bool { return wholes[axis] != axis; }

  constexpr auto NumRanks() const -> int64_t {
    int64_t product = 1;
    for (size_t i = 0; i < N; ++i) {
      product *= IsPart(i) ? 1 : sizes[i];
    }
    return product;
  }

  constexpr auto CoordinatesOf(int64_t rank) const -> Coordinates {
    Coordinates coordinates{};
    for (size_t i = N; i-- > 0;) {
      if (!IsPart(i)) {
        coordinates[i] = rank % sizes[i];
        rank /= sizes[i];
      }
    }
    for (size_t i = 0; i < N; ++i) {
      coordinates[i] = IsPart(i) ? coordinates[wholes[i]] % sizes[i] : coordinates[i];
    }
    return coordinates;
  }

  /// By the coordinates along the axes that are no parts.
  constexpr auto RankOf(const Coordinates& coordinates) const -> int64_t {
    int64_t rank = 0;
    for (size_t i = 0; i < N; ++i) {
      rank = IsPart(i) ? rank : rank * sizes[i] + coordinates[i];
    }
    return rank;
  }

  /// Those of the set that have more than one rank, without a part whose whole is in the set.
  constexpr auto Spread(uint32_t axes) const -> uint32_t {
    uint32_t spread = 0;
    for (size_t i = 0; i < N; ++i) {
      const bool in_whole = IsPart(i) && Has(axes, wholes[i]);
      spread |= Has(axes, i) && sizes[i] > 1 && !in_whole ? Bit(i) : 0;
    }
    return spread;
  }

  /// Ranks of a group.
  constexpr auto GroupSize(uint32_t axes) const -> int64_t {
    int64_t product = 1;
    for (size_t i = 0; i < N; ++i) {
      product *= IsPart(i) ? 1 : SizeAlong(axes, i);
    }
    return product;
  }

  /// The index of `rank` in its group, in rank order.
  constexpr auto IndexIn(uint32_t axes, int64_t rank) const -> int64_t {
    const Coordinates own = CoordinatesOf(rank);
    int64_t index = 0;
    for (size_t i = 0; i < N; ++i) {
      if (!IsPart(i)) {
        const int64_t size = SizeAlong(axes, i);
        index = index * size + own[i] % size;
      }
    }
    return index;
  }

  /// The ranks of the group that `rank` belongs to, in rank order.
  auto Group(uint32_t axes, int64_t rank) const -> std::vector<int64_t> {
    Coordinates first = CoordinatesOf(rank);
    for (size_t i = 0; i < N; ++i) {
      first[i] -= IsPart(i) ? 0 : first[i] % SizeAlong(axes, i);
    }
    std::vector<int64_t> ranks(static_cast<size_t>(GroupSize(axes)));
    Coordinates at = first;
    for (int64_t& member : ranks) {
      member = RankOf(at);
      // To the next one, as an odometer does.
      for (size_t i = N; i-- > 0;) {
        if (IsPart(i)) {
          continue;
        }
        if (++at[i] < first[i] + SizeAlong(axes, i)) {
          break;
        }
        at[i] = first[i];
      }
    }
    return ranks;
  }

  /// The number of that group among those over the set, in the order of their first ranks.
  constexpr auto GroupNumber(uint32_t axes, int64_t rank) const -> int64_t {
    const Coordinates own = CoordinatesOf(rank);
    int64_t number = 0;
    for (size_t i = 0; i < N; ++i) {
      if (!IsPart(i)) {
        const int64_t size = SizeAlong(axes, i);
        number = number * (sizes[i] / size) + own[i] / size;
      }
    }
    return number;
  }

  /// The grid of the ranks in one block of `block` neighbouring ranks, if blocks follow one another from rank 0: the
  /// n-th rank of a block is rank n of it. Requires: BlocksAreBoxes(block).
  constexpr auto OfBlock(int64_t block) const -> RankGrid {
    RankGrid grid = *this;
    int64_t stride = NumRanks();
    for (size_t i = 0; i < N; ++i) {
      if (!IsPart(i)) {
        stride /= sizes[i];
        grid.sizes[i] = std::min(sizes[i], std::max<int64_t>(1, block / stride));
      }
    }
    for (size_t i = 0; i < N; ++i) {
      grid.sizes[i] = std::min(grid.sizes[i], grid.sizes[wholes[i]]);
    }
    return grid;
  }

  /// Do blocks of `block` neighbouring ranks cut the grid along one axis at most, and no group of a part unevenly? Then
  /// each group, over whatever axes, has as many ranks in each block that it meets.
  constexpr auto BlocksAreBoxes(int64_t block) const -> bool {
    const auto divides = [](int64_t a, int64_t b) { return a % b == 0 || b % a == 0; };
    int64_t stride = NumRanks();
    for (size_t i = 0; i < N; ++i) {
      if (!IsPart(i)) {
        if (!divides(block, stride)) {
          return false;
        }
        stride /= sizes[i];
        for (size_t part = 0; part < N; ++part) {
          if (IsPart(part) && wholes[part] == i && !divides(block, stride * sizes[part])) {
            return false;
          }
        }
      }
    }
    return true;
  }

 private:
  static constexpr auto Bit(size_t axis) -> uint32_t { return 1U << axis; }
  static constexpr auto Has(uint32_t axes, size_t axis) -> bool { return (axes & Bit(axis)) != 0; }

  /// How many neighbours along an axis that is no part are in one group: all, those of its part in the set, or one.
  constexpr auto SizeAlong(uint32_t axes, size_t axis) const -> int64_t {
    if (Has(axes, axis)) {
      return sizes[axis];
    }
    for (size_t i = 0; i < N; ++i) {
      if (i != axis && wholes[i] == axis && Has(axes, i)) {
        return sizes[i];
      }
    }
    return 1;
  }
};

}  // namespace shardc
