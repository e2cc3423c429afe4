#include "compiler/mesh/mesh.h"

#include <fmt/ranges.h>

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
    FAIL_IF(!axis, ExitCode::Usage, "no axis `{}`; axes are {}", word, fmt::join(EnumNames<Axis>::names, ", "));
    axes = axes | AxisSet::Of(*axis);
    if (plus == std::string_view::npos) {
      return axes;
    }
    text.remove_prefix(plus + 1);
  }
}

auto WithRelated(AxisSet axes) -> AxisSet {
  AxisSet related = axes;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    const AxisSet both = AxisSet::Of(axis) | AxisSet::Of(WholeOf(axis));
    related = (related & both) == AxisSet{} ? related : related | both;
  }
  return related;
}

auto Mesh::CoordinatesOf(int64_t rank) const -> Coordinates {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return Grid().CoordinatesOf(rank);
}

auto Mesh::IndexIn(AxisSet axes, int64_t rank) const -> int64_t {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return Grid().IndexIn(axes.bits, rank);
}

auto Mesh::Group(AxisSet axes, int64_t rank) const -> std::vector<int64_t> {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return Grid().Group(axes.bits, rank);
}

auto Mesh::GroupNumber(AxisSet axes, int64_t rank) const -> int64_t {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return Grid().GroupNumber(axes.bits, rank);
}

auto Mesh::HostOf(int64_t rank) const -> int64_t {
  CHECK(rank >= 0 && rank < num_ranks(), "rank {} of {}", rank, num_ranks());
  return rank / ranks_per_host();
}

auto Mesh::RanksOfHost(int64_t host) const -> Interval {
  CHECK(host >= 0 && host < hosts, "host {} of {}", host, hosts);
  return {host * ranks_per_host(), (host + 1) * ranks_per_host()};
}

auto Mesh::OfOneHost() const -> Mesh {
  const auto grid = Grid().OfBlock(ranks_per_host());
  Mesh mesh;
  for (size_t i = 0; i < NumAxes; ++i) {
    mesh.set_size(static_cast<Axis>(i), grid.sizes[i]);
  }
  return mesh;
}

auto Spread(const Mesh& mesh, AxisSet axes) -> AxisSet { return {static_cast<uint8_t>(mesh.Grid().Spread(axes.bits))}; }

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
