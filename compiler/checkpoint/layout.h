// How ranks share the state: what each rank stores in its file follows from these few numbers and the mesh. Writers and
// readers of checkpoints compute it here, so that a manifest need not list the pieces.
//
// A layout is that of one sub-vector, which holds tensors one after another. Ranks along `cut` each hold a range of the
// rows or columns of every tensor; the vector of what they hold is shared in equal slices by the ranks along `axes`;
// along the other axes of the mesh ranks hold copies, of which the first rank stores its own.
#pragma once

#include <optional>
#include <set>

#include "compiler/mesh/box_interval.h"
#include "compiler/plan/cut_tensor.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct Layout {
  /// Of the vector, in elements, padding included.
  int64_t length = 0;
  /// The axes whose ranks share it in equal slices, in rank order.
  AxisSet axes;
  /// The axes that each of its tensors is cut over.
  AxisSet cut;
  /// What is stored of it: its parameters, and what the optimizer keeps of them.
  std::set<StateRole> roles;

  friend auto operator==(const Layout&, const Layout&) -> bool = default;
};

/// Without roles.
auto LayoutOf(const SubVector& sub_vector) -> Layout;

/// A tensor in the vector of a layout.
struct LaidTensor {
  CutTensor tensor;
  /// Its first element in the vector.
  int64_t begin = 0;
};

/// Of ranks that hold the same elements, does this one store them?
auto Stores(const Layout& layout, const Mesh& mesh, int64_t rank) -> bool;

/// What one rank owns of a tensor.
struct LaidPiece {
  /// Of the tensor.
  BoxInterval elements;
  /// In elements of the slice that the rank owns.
  int64_t slice_begin = 0;
};
/// Nothing if the rank owns none of the tensor. Requires: the layout and the tensor are sound (CheckLayouts).
auto PieceOf(const Layout& layout, const Mesh& mesh, const LaidTensor& laid, int64_t rank) -> std::optional<LaidPiece>;

/// The ranks that store elements of a tensor, in the order of the elements of each range that it is cut into.
/// Requires: as PieceOf. Cost: that of the ranks along the layout's axes, and of those in the result.
auto RanksThatStore(const Layout& layout, const Mesh& mesh, const LaidTensor& laid) -> std::vector<int64_t>;

}  // namespace shardc
