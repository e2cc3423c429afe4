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
      return Fail(ExitCode::Usage, "no axis `{}`; axes are replicate, dp and tp", word);
    }
    axes = axes | AxisSet::Of(*axis);
    if (plus == std::string_view::npos) {
      return axes;
    }
    text.remove_prefix(plus + 1);
  }
}

auto Mesh::size(AxisSet axes) const -> int64_t {
  int64_t product = 1;
  for (int i = 0; i < NumAxes; ++i) {
    product *= axes.Has(static_cast<Axis>(i)) ? sizes[static_cast<size_t>(i)] : 1;
  }
  return product;
}

auto Mesh::CoordinatesOf(int64_t rank) const -> Coordinates {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return {rank / (sizes[1] * sizes[2]), rank / sizes[2] % sizes[1], rank % sizes[2]};
}

auto Mesh::RankOf(const Coordinates& coordinates) const -> int64_t {
  return (coordinates[0] * sizes[1] + coordinates[1]) * sizes[2] + coordinates[2];
}

auto Mesh::IndexIn(AxisSet axes, int64_t rank) const -> int64_t {
  const Coordinates own = CoordinatesOf(rank);
  int64_t index = 0;
  for (int i = 0; i < NumAxes; ++i) {
    if (axes.Has(static_cast<Axis>(i))) {
      index = index * sizes[static_cast<size_t>(i)] + own[static_cast<size_t>(i)];
    }
  }
  return index;
}

auto Mesh::Group(AxisSet axes, int64_t rank) const -> std::vector<int64_t> {
  const Coordinates own = CoordinatesOf(rank);
  std::vector<int64_t> ranks;
  ranks.reserve(static_cast<size_t>(size(axes)));
  const auto first = [&](int i) { return axes.Has(static_cast<Axis>(i)) ? 0 : own[static_cast<size_t>(i)]; };
  const auto last = [&](int i) {
    return axes.Has(static_cast<Axis>(i)) ? sizes[static_cast<size_t>(i)] - 1 : own[static_cast<size_t>(i)];
  };
  for (int64_t r = first(0); r <= last(0); ++r) {
    for (int64_t d = first(1); d <= last(1); ++d) {
      for (int64_t t = first(2); t <= last(2); ++t) {
        ranks.push_back(RankOf({r, d, t}));
      }
    }
  }
  return ranks;
}

auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet {
  AxisSet spread;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (axes.Has(axis) && mesh.size(axis) > 1) {
      spread = spread | AxisSet::Of(axis);
    }
  }
  return spread;
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
