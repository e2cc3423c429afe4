#include "compiler/plan/local_parameter.h"

#include <algorithm>

namespace shardc {

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

namespace {

/// A cut tensor as the dims before the one that is cut, that one, and those after it.
struct Cut {
  int64_t outer = 1;
  /// Of the dim that is cut: all, and room for it on each rank.
  int64_t size = 1;
  int64_t room = 1;
  int64_t inner = 1;

  /// Indices of the dim that there are at a coordinate.
  auto Held(int64_t tp) const -> int64_t { return std::clamp<int64_t>(size - tp * room, 0, room); }
};

auto CutOf(const Parameter& parameter, const Mesh& mesh) -> Cut {
  const auto dim = static_cast<size_t>(parameter.tp_dim);
  CHECK(dim < parameter.shape.size(), "{}: dim {} of {} is cut", parameter.name, dim, ToText(parameter.shape));
  Cut cut{.size = parameter.shape[dim], .room = CeilDiv(parameter.shape[dim], mesh.size(Axis::Tp))};
  for (size_t i = 0; i < parameter.shape.size(); ++i) {
    (i < dim ? cut.outer : cut.inner) *= i == dim ? 1 : parameter.shape[i];
  }
  // Padding would stand between the elements then.
  CHECK(cut.outer == 1 || cut.size % mesh.size(Axis::Tp) == 0, "{}: dim {} of {} is cut into {}", parameter.name, dim,
        ToText(parameter.shape), mesh.size(Axis::Tp));
  return cut;
}

}  // namespace

auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t tp) -> int64_t {
  if (!IsCut(parameter, mesh)) {
    return parameter.num_elements();
  }
  const Cut cut = CutOf(parameter, mesh);
  return cut.outer * cut.Held(tp) * cut.inner;
}

auto LogicalRange(const Parameter& parameter, const Mesh& mesh, int64_t tp, Interval elements) -> BoxRange {
  if (!IsCut(parameter, mesh)) {
    return BoxRange::Of(elements);
  }
  const Cut cut = CutOf(parameter, mesh);
  const int64_t first = tp * cut.room * cut.inner;
  if (cut.outer == 1) {
    return BoxRange::Of({first + elements.begin, first + elements.end});
  }
  return {.elements = elements, .row = cut.size * cut.inner, .columns = {first, first + cut.room * cut.inner}};
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
