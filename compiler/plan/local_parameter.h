// What one coordinate of the tp axis holds of a parameter: a stretch of its rows or of its columns, or all of it.
//
// Rows are dealt out in equal stretches of ceil(rows / tp), so that the last coordinates may hold fewer than their
// room, or none: padding, which no rule initialises, no update touches and no checkpoint holds. Columns divide evenly,
// and so does any other dim but the first. The verifier accepts rows of any tensor and columns of matrices, as
// checkpoints do.
#pragma once

#include <optional>

#include "compiler/mesh/box_range.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Room for it on every rank: the logical shape, cut along the parameter's tp_dim.
auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims;
/// How many of its elements there are at a coordinate, the first of its room.
auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t tp) -> int64_t;
/// Where elements [begin, end) of what lies at a coordinate belong in the logical tensor.
/// Requires: end <= LocalElements.
auto LogicalRange(const Parameter& parameter, const Mesh& mesh, int64_t tp, Interval elements) -> BoxRange;
/// The same of what a rank owns of a segment, in elements of the sub-vector as OwnedSegment gives it.
auto LogicalRange(const Plan& plan, const Segment& segment, Interval owned, int64_t rank) -> BoxRange;

/// What a rank owns of a segment.
struct OwnedPart {
  /// Of the logical tensor.
  BoxRange elements;
  /// In elements of the slice that the rank owns.
  Interval in_slice;
};
/// Nothing where it owns none of it.
auto OwnedPartOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank)
    -> std::optional<OwnedPart>;

}  // namespace shardc
