#include "runtime/checkpoint/stored_pieces.h"

#include "compiler/plan/local_parameter.h"

namespace shardc {

auto StoredPieces(const Plan& plan, int64_t rank) -> std::vector<StoredPiece> {
  std::vector<StoredPiece> pieces;
  for (const Op& op : plan.section(SectionKind::Save).ops) {
    const auto* save = op.As<op::SaveShard>();
    if (save == nullptr) {
      continue;
    }
    const SubVector& sub_vector = plan.sub_vectors[save->sub_vector];
    // Of ranks that hold the same slice the first one stores it.
    if (plan.mesh.IndexIn(CopyAxes(sub_vector, plan.mesh), rank) != 0) {
      continue;
    }
    for (const OwnedSegment& owned : OwnedSegments(plan, save->sub_vector, rank)) {
      pieces.push_back({.sub_vector = save->sub_vector,
                        .role = save->role,
                        .parameter = owned.parameter,
                        .elements = owned.elements,
                        .slice_begin = owned.in_slice.begin});
    }
  }
  return pieces;
}

}  // namespace shardc
