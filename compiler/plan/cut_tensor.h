// A tensor of which ranks share one dim, and what each of them holds of it: the arithmetic that parameters of a plan
// (local_parameter.h) and tensors of a checkpoint have in common.
//
// Each rank holds ceil(size / ranks) of the dim, so that the last ranks may hold less of the tensor, or none; the rest
// of their vectors is padding. Where other dims come before the one that is cut, it divides evenly.
#pragma once

#include <optional>

#include "compiler/mesh/box_interval.h"
#include "compiler/plan/types.h"

namespace shardc {

struct CutTensor {
  Dims shape;
  /// The dim that is cut; none if each rank has the whole tensor.
  std::optional<size_t> dim;
  /// Ranks that share the dim.
  int64_t num_ranks = 1;

  /// Returns the shape that a rank holds, padding included.
  auto LocalShape() const -> Dims;
  /// Returns how many elements the rank of this index holds, without padding: the first elements of the local shape.
  auto LocalElements(int64_t index) const -> int64_t;
  /// Returns where elements [begin, end) of what that rank holds belong in the tensor. Requires: end <= LocalElements.
  auto LogicalInterval(int64_t index, Interval elements) const -> BoxInterval;
};

}  // namespace shardc
