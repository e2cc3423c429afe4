// What a rank holds of a parameter that is cut over axes whose ranks share each matrix: a stretch of its rows or of its
// columns. Of any other it holds all.
//
// Rows are dealt out in equal stretches of ceil(rows / ranks), so that the last ranks may hold fewer than their room,
// or none: padding, which no rule initialises, no update touches and no checkpoint holds. Columns divide evenly,
// and so does any other dim but the first. The verifier accepts rows of any tensor and columns of matrices, as
// checkpoints do.
#pragma once

#include <optional>

#include "compiler/mesh/box_range.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The axes of more than one rank that it is cut over.
auto CutAxes(const Parameter& parameter, const Mesh& mesh) -> AxisSet;
/// The dim that it is cut along; none where it is whole on each rank. Requires: over all axes it is cut along one.
auto CutDim(const Parameter& parameter, const Mesh& mesh) -> std::optional<size_t>;
/// Room for it on every rank: the logical shape, of which the dim that is cut is a stretch.
auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims;
/// How many of its elements a rank holds, the first of its room.
auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t rank) -> int64_t;
/// Where elements [begin, end) of what a rank holds belong in the logical tensor. Requires: end <= LocalElements.
auto LogicalRange(const Parameter& parameter, const Mesh& mesh, int64_t rank, Interval elements) -> BoxRange;
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
