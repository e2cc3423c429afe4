#include "compiler/plan/local_parameter.h"

#include <algorithm>

namespace shardc {

auto CutAxes(const Parameter& parameter, const Mesh& mesh) -> AxisSet {
  return Spread(mesh, CutAxes(parameter.placement));
}

auto CutDim(const Parameter& parameter, const Mesh& mesh) -> std::optional<size_t> {
  const AxisSet axes = CutAxes(parameter, mesh);
  std::optional<size_t> cut;
  for (size_t i = 0; i < NumAxes; ++i) {
    if (axes.Has(static_cast<Axis>(i))) {
      const auto dim = static_cast<size_t>(parameter.placement[i].dim);
      CHECK(!cut || *cut == dim, "{} is cut along dims {} and {}", parameter.name, *cut, dim);
      cut = dim;
    }
  }
  return cut;
}

auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims {
  Dims shape = parameter.shape;
  if (const auto dim = CutDim(parameter, mesh)) {
    shape[*dim] = CeilDiv(shape[*dim], mesh.size(CutAxes(parameter, mesh)));
  }
  return shape;
}

namespace {

/// A cut tensor as the dims before the one that is cut, that one, and those after it.
struct Cut {
  int64_t outer = 1;
  /// Of the dim that is cut: all, and what each rank has of it, padding included.
  int64_t size = 1;
  int64_t capacity = 1;
  int64_t inner = 1;

  /// Of this rank among those that share the dim.
  int64_t index = 0;

  /// The first index of the dim that the rank holds, and how many it does.
  auto First() const -> int64_t { return index * capacity; }
  auto Held() const -> int64_t { return std::clamp<int64_t>(size - First(), 0, capacity); }
};

auto CutOf(const Parameter& parameter, const Mesh& mesh, size_t dim, int64_t rank) -> Cut {
  const AxisSet axes = CutAxes(parameter, mesh);
  const int64_t ranks = mesh.size(axes);
  CHECK(dim < parameter.shape.size(), "{}: dim {} of {} is cut", parameter.name, dim, ToText(parameter.shape));
  Cut cut{.size = parameter.shape[dim],
          .capacity = CeilDiv(parameter.shape[dim], ranks),
          .index = mesh.IndexIn(axes, rank)};
  for (size_t i = 0; i < parameter.shape.size(); ++i) {
    (i < dim ? cut.outer : cut.inner) *= i == dim ? 1 : parameter.shape[i];
  }
  // Padding would stand between the elements then.
  CHECK(cut.outer == 1 || cut.size % ranks == 0, "{}: dim {} of {} is cut into {}", parameter.name, dim,
        ToText(parameter.shape), ranks);
  return cut;
}

}  // namespace

auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t rank) -> int64_t {
  const auto dim = CutDim(parameter, mesh);
  if (!dim) {
    return parameter.num_elements();
  }
  const Cut cut = CutOf(parameter, mesh, *dim, rank);
  return cut.outer * cut.Held() * cut.inner;
}

auto LogicalInterval(const Parameter& parameter, const Mesh& mesh, int64_t rank, Interval elements) -> BoxInterval {
  const auto dim = CutDim(parameter, mesh);
  if (!dim) {
    return BoxInterval::Of(elements);
  }
  const Cut cut = CutOf(parameter, mesh, *dim, rank);
  const int64_t first = cut.First() * cut.inner;
  if (cut.outer == 1) {
    return BoxInterval::Of({first + elements.begin, first + elements.end});
  }
  return {.elements = elements, .row = cut.size * cut.inner, .columns = {first, first + cut.capacity * cut.inner}};
}

auto LogicalInterval(const Plan& plan, const Segment& segment, Interval owned, int64_t rank) -> BoxInterval {
  return LogicalInterval(plan.parameters[segment.parameter], plan.mesh, rank,
                         {owned.begin - segment.begin, owned.end - segment.begin});
}

auto OwnedSegmentOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank)
    -> std::optional<OwnedSegment> {
  const Interval owned = OwnedElementsOf(plan, sub_vector, segment, rank);
  if (owned.empty()) {
    return std::nullopt;
  }
  const int64_t slice_begin = OwnedSlice(sub_vector, plan.mesh, rank).begin;
  return OwnedSegment{.parameter = segment.parameter,
                      .elements = LogicalInterval(plan, segment, owned, rank),
                      .in_slice = {owned.begin - slice_begin, owned.end - slice_begin},
                      .counted_in_norm = segment.counted_in_norm};
}

auto OwnedSegments(const Plan& plan, SubVectorId id, int64_t rank) -> std::vector<OwnedSegment> {
  const SubVector& sub_vector = plan.sub_vectors[id];
  std::vector<OwnedSegment> owned;
  for (const Segment& segment : sub_vector.segments) {
    if (const auto of_segment = OwnedSegmentOf(plan, sub_vector, segment, rank)) {
      owned.push_back(*of_segment);
    }
  }
  return owned;
}

}  // namespace shardc
