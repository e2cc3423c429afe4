#include "compiler/plan/local_parameter.h"

#include <algorithm>

#include "compiler/plan/cut_tensor.h"

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

static auto CutTensorOf(const Parameter& parameter, const Mesh& mesh) -> CutTensor {
  return {.shape = parameter.shape, .dim = CutDim(parameter, mesh), .num_ranks = mesh.size(CutAxes(parameter, mesh))};
}

auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims {
  return CutTensorOf(parameter, mesh).LocalShape();
}

auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t rank) -> int64_t {
  return CutTensorOf(parameter, mesh).LocalElements(mesh.IndexIn(CutAxes(parameter, mesh), rank));
}

auto LogicalInterval(const Parameter& parameter, const Mesh& mesh, int64_t rank, Interval elements) -> BoxInterval {
  return CutTensorOf(parameter, mesh).LogicalInterval(mesh.IndexIn(CutAxes(parameter, mesh), rank), elements);
}

auto LogicalInterval(const Plan& plan, const Segment& segment, Interval owned, int64_t rank) -> BoxInterval {
  return LogicalInterval(plan.parameters[segment.parameter], plan.mesh, rank,
                         {owned.begin - segment.begin, owned.end - segment.begin});
}

auto OwnedElementsOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank) -> Interval {
  const int64_t elements = LocalElements(plan.parameters[segment.parameter], plan.mesh, rank);
  return Intersect({segment.begin, std::min(segment.end, segment.begin + elements)},
                   OwnedSlice(sub_vector, plan.mesh, rank));
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
