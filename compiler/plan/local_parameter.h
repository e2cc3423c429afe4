// What a rank holds of a parameter, and what it owns of the segment of a parameter. Of a parameter that is cut over
// axes whose ranks share each matrix, a rank holds a range of the rows or of the columns. Of any other it holds all.
//
// Each rank gets ceil(rows / ranks) rows, so that the last ranks may hold fewer rows of the parameter, or none: the
// others are padding, which no rule initialises, no update touches and no checkpoint holds. Columns divide evenly,
// and so does any other dim but the first. The verifier accepts rows of any tensor and columns of matrices, as
// checkpoints do.
#pragma once

#include <optional>
#include <vector>

#include "compiler/mesh/box_interval.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// Returns the axes of more than one rank that a parameter is cut over.
auto CutAxes(const Parameter& parameter, const Mesh& mesh) -> AxisSet;
/// Returns the dim that it is cut along; nothing if each rank has it whole. Requires: over all axes it is cut along
/// one.
auto CutDim(const Parameter& parameter, const Mesh& mesh) -> std::optional<size_t>;
/// Returns the shape that a rank holds of it, padding included.
auto LocalShape(const Parameter& parameter, const Mesh& mesh) -> Dims;
/// Returns how many of its elements a rank holds, without padding: the first elements of the local shape.
auto LocalElements(const Parameter& parameter, const Mesh& mesh, int64_t rank) -> int64_t;
/// Returns the elements of a segment that lie in the slice of a rank, without padding, in elements of the sub-vector.
auto OwnedElementsOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank) -> Interval;
/// Returns where elements [begin, end) of what a rank holds belong in the logical tensor. Requires: end <=
/// LocalElements.
auto LogicalInterval(const Parameter& parameter, const Mesh& mesh, int64_t rank, Interval elements) -> BoxInterval;
/// Returns where the owned elements of a segment belong in the logical tensor. `owned`: as OwnedElementsOf gives it.
auto LogicalInterval(const Plan& plan, const Segment& segment, Interval owned, int64_t rank) -> BoxInterval;

/// Elements of a segment that a rank owns.
struct OwnedSegment {
  ParameterId parameter;
  /// The elements in the logical tensor.
  BoxInterval elements;
  /// In elements of the slice that the rank owns.
  Interval in_slice;
  bool counted_in_norm = true;
};
/// Returns the owned segment of a rank; nothing if the rank owns no element of the segment.
auto OwnedSegmentOf(const Plan& plan, const SubVector& sub_vector, const Segment& segment, int64_t rank)
    -> std::optional<OwnedSegment>;
/// Returns the owned segments of a rank's slice, in the order of the table, without padding.
auto OwnedSegments(const Plan& plan, SubVectorId id, int64_t rank) -> std::vector<OwnedSegment>;

}  // namespace shardc
