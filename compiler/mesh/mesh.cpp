#include "compiler/mesh/mesh.h"

#include <algorithm>

namespace shardc {

auto ToText(AxisSet axes) -> std::string {
  std::string text;
  for (int i = 0; i < NumAxes; ++i) {
    if (axes.Has(static_cast<Axis>(i))) {
      text += text.empty() ? "" : "+";
      text += ToText(static_cast<Axis>(i));
    }
  }
  return text.empty() ? "none" : text;
}

auto AxisSetFromText(std::string_view text) -> ErrorOr<AxisSet> {
  AxisSet axes;
  if (text == "none") {
    return axes;
  }
  while (true) {
    const size_t plus = text.find('+');
    const std::string_view word = text.substr(0, plus);
    const auto axis = FromText<Axis>(word);
    if (!axis) {
      return Fail(ExitCode::Usage, "no axis `{}`; axes are replicate, dp, tp and dp_inner", word);
    }
    axes = axes | AxisSet::Of(*axis);
    if (plus == std::string_view::npos) {
      return axes;
    }
    text.remove_prefix(plus + 1);
  }
}

auto Mesh::size(AxisSet axes) const -> int64_t {
  const AxisSet spread = Spread(*this, axes);
  int64_t product = 1;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    product *= spread.Has(axis) ? size(axis) : 1;
  }
  return product;
}

auto Mesh::CoordinatesOf(int64_t rank) const -> Coordinates {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  const int64_t dp = rank / sizes[2] % sizes[1];
  return {rank / (sizes[1] * sizes[2]), dp, rank % sizes[2], dp % dp_inner};
}

auto Mesh::RankOf(const Coordinates& coordinates) const -> int64_t {
  return (coordinates[0] * sizes[1] + coordinates[1]) * sizes[2] + coordinates[2];
}

auto Mesh::IndexIn(AxisSet axes, int64_t rank) const -> int64_t {
  const Coordinates own = CoordinatesOf(rank);
  const AxisSet spread = Spread(*this, axes);
  int64_t index = 0;
  for (const Axis axis : {Axis::Replicate, Axis::Dp, Axis::DpInner, Axis::Tp}) {
    if (spread.Has(axis)) {
      index = index * size(axis) + own[static_cast<size_t>(axis)];
    }
  }
  return index;
}

/// The coordinates along dp of a group: all of them, those of one group of dp_inner, or one.
static auto DpRange(const Mesh& mesh, AxisSet axes, int64_t dp) -> Interval {
  const int64_t size = axes.Has(Axis::Dp) ? mesh.size(Axis::Dp) : axes.Has(Axis::DpInner) ? mesh.dp_inner : 1;
  return {dp / size * size, dp / size * size + size};
}

auto Mesh::Group(AxisSet axes, int64_t rank) const -> std::vector<int64_t> {
  const Coordinates own = CoordinatesOf(rank);
  const auto range = [&](Axis axis) {
    const int64_t at = own[static_cast<size_t>(axis)];
    return axes.Has(axis) ? Interval{0, size(axis)} : Interval{at, at + 1};
  };
  const Interval replicate = range(Axis::Replicate);
  const Interval dp = DpRange(*this, axes, own[static_cast<size_t>(Axis::Dp)]);
  const Interval tp = range(Axis::Tp);
  std::vector<int64_t> ranks;
  ranks.reserve(static_cast<size_t>(size(axes)));
  for (int64_t r = replicate.begin; r < replicate.end; ++r) {
    for (int64_t d = dp.begin; d < dp.end; ++d) {
      for (int64_t t = tp.begin; t < tp.end; ++t) {
        ranks.push_back(RankOf({r, d, t}));
      }
    }
  }
  return ranks;
}

auto Mesh::GroupNumber(AxisSet axes, int64_t rank) const -> int64_t {
  const Coordinates own = CoordinatesOf(rank);
  const int64_t dp_size = DpRange(*this, axes, 0).size();
  int64_t number = axes.Has(Axis::Replicate) ? 0 : own[0];
  number = number * (sizes[1] / dp_size) + own[1] / dp_size;
  return axes.Has(Axis::Tp) ? number : number * sizes[2] + own[2];
}

auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet {
  AxisSet spread;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (axes.Has(axis) && mesh.size(axis) > 1) {
      spread = spread | AxisSet::Of(axis);
    }
  }
  return axes.Has(Axis::Dp) ? spread.Without(AxisSet::Of(Axis::DpInner)) : spread;
}

auto Intersect(const Interval& a, const Interval& b) -> Interval {
  return {std::max(a.begin, b.begin), std::max(std::max(a.begin, b.begin), std::min(a.end, b.end))};
}

auto OwnedSlice(int64_t length, int64_t degree, int64_t index) -> Interval {
  CHECK(degree > 0 && length % degree == 0, "length {} over degree {}", length, degree);
  CHECK(index >= 0 && index < degree, "slice {} of {}", index, degree);
  const int64_t slice = length / degree;
  return {index * slice, (index + 1) * slice};
}

}  // namespace shardc
