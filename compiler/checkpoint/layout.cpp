#include "compiler/checkpoint/layout.h"

namespace shardc {

auto LayoutOf(const SubVector& sub_vector) -> Layout {
  return {.length = sub_vector.length, .axes = sub_vector.axes, .cut = sub_vector.cut, .roles = {}};
}

auto Stores(const Layout& layout, const Mesh& mesh, int64_t rank) -> bool {
  return mesh.IndexIn(AxisSet::All().Without(layout.axes | layout.cut), rank) == 0;
}

/// The elements of the vector that belong to what one of the ranks along `cut` holds of the tensor, without padding.
static auto HeldElements(const LaidTensor& laid, int64_t cut_index) -> Interval {
  return {laid.begin, laid.begin + laid.tensor.LocalElements(cut_index)};
}

auto PieceOf(const Layout& layout, const Mesh& mesh, const LaidTensor& laid, int64_t rank) -> std::optional<LaidPiece> {
  const int64_t cut_index = mesh.IndexIn(layout.cut, rank);
  const Interval slice = OwnedSlice(layout.length, mesh.size(layout.axes), mesh.IndexIn(layout.axes, rank));
  const Interval owned = Intersect(HeldElements(laid, cut_index), slice);
  if (owned.empty()) {
    return std::nullopt;
  }
  return LaidPiece{
      .elements = laid.tensor.LogicalInterval(cut_index, {owned.begin - laid.begin, owned.end - laid.begin}),
      .slice_begin = owned.begin - slice.begin};
}

auto RanksThatStore(const Layout& layout, const Mesh& mesh, const LaidTensor& laid) -> std::vector<int64_t> {
  // Rank numbers are row-major, so the steps along the two sets of axes add up.
  const std::vector<int64_t> along_cut = mesh.Group(layout.cut, 0);
  const std::vector<int64_t> along_axes = mesh.Group(layout.axes, 0);
  const int64_t slice = layout.length / std::ssize(along_axes);
  std::vector<int64_t> ranks;
  for (size_t c = 0; c < along_cut.size(); ++c) {
    const Interval held = HeldElements(laid, static_cast<int64_t>(c));
    for (int64_t s = held.begin / slice; !held.empty() && s * slice < held.end; ++s) {
      ranks.push_back(along_cut[c] + along_axes[static_cast<size_t>(s)]);
    }
  }
  return ranks;
}

}  // namespace shardc
