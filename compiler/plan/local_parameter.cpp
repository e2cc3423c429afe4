#include "compiler/plan/local_parameter.h"

#include <algorithm>

namespace shardc {

/// A tensor as a matrix: its first dim by the rest.
static auto RowLength(const Parameter& parameter) -> int64_t {
  return parameter.shape.empty() || parameter.shape[0] == 0 ? 1 : parameter.num_elements() / parameter.shape[0];
}

static auto IsCut(const Parameter& parameter, const Mesh& mesh) -> bool {
  return parameter.tp_dim >= 0 && mesh.size(Axis::Tp) > 1;
}

auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims {
  Dims shape = parameter.shape;
  if (IsCut(parameter, mesh)) {
    int64_t& size = shape[static_cast<size_t>(parameter.tp_dim)];
    size = CeilDiv(size, mesh.size(Axis::Tp));
  }
  return shape;
}

auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t tp) -> int64_t {
  const Dims shape = LocalShape(parameter, mesh);
  if (!IsCut(parameter, mesh) || parameter.tp_dim != 0) {
    return NumElements(shape);
  }
  return std::clamp<int64_t>(parameter.shape[0] - tp * shape[0], 0, shape[0]) * RowLength(parameter);
}

auto LogicalRange(const Parameter& parameter, const Mesh& mesh, int64_t tp, Interval elements) -> BoxRange {
  if (!IsCut(parameter, mesh)) {
    return BoxRange::Of(elements);
  }
  const Dims shape = LocalShape(parameter, mesh);
  if (parameter.tp_dim == 0) {
    const int64_t first = tp * NumElements(shape);
    return BoxRange::Of({first + elements.begin, first + elements.end});
  }
  return {.elements = elements, .row = parameter.shape[1], .columns = {tp * shape[1], (tp + 1) * shape[1]}};
}

auto LogicalRange(const Plan& plan, const Segment& segment, Interval owned, int64_t rank) -> BoxRange {
  return LogicalRange(plan.parameters[segment.parameter], plan.mesh, plan.mesh.IndexIn(AxisSet::Of(Axis::Tp), rank),
                      {owned.begin - segment.begin, owned.end - segment.begin});
}

auto OwnedPartOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank)
    -> std::optional<OwnedPart> {
  const Interval owned = OwnedSegment(plan, sub_vector, segment, rank);
  if (owned.empty()) {
    return std::nullopt;
  }
  const int64_t slice_begin = OwnedSliceOf(sub_vector, plan.mesh, rank).begin;
  return OwnedPart{LogicalRange(plan, segment, owned, rank), {owned.begin - slice_begin, owned.end - slice_begin}};
}

}  // namespace shardc
