#include "runtime/checkpoint/stored_pieces.h"

#include "compiler/plan/local_parameter.h"

namespace shardc {

static auto LaidTensorOf(const Plan& plan, const Segment& segment) -> LaidTensor {
  const Parameter& parameter = plan.parameters[segment.parameter];
  return {.tensor = {.shape = parameter.shape,
                     .dim = CutDim(parameter, plan.mesh),
                     .num_ranks = plan.mesh.size(CutAxes(parameter, plan.mesh))},
          .begin = segment.begin};
}

/// Calls function(save_shard) for each op of the save section that saves a shard, in order.
template <class Function>
static auto ForEachSavedShard(const Plan& plan, Function&& function) -> void {
  for (const Op& op : plan.section(SectionKind::Save).ops) {
    if (const auto* save = op.As<op::SaveShard>()) {
      function(*save);
    }
  }
}

auto StoredPieces(const Plan& plan, int64_t rank, const LeftToBase& left) -> std::vector<StoredPiece> {
  std::vector<StoredPiece> pieces;
  ForEachSavedShard(plan, [&](const auto& save) {
    const SubVector& sub_vector = plan.sub_vectors[save.sub_vector];
    const Layout layout = LayoutOf(sub_vector);
    if (!Stores(layout, plan.mesh, rank)) {
      return;
    }
    for (const Segment& segment : sub_vector.segments) {
      if (left.tensors.contains(plan.parameters[segment.parameter].name)) {
        continue;
      }
      if (const auto piece = PieceOf(layout, plan.mesh, LaidTensorOf(plan, segment), rank)) {
        pieces.push_back({.sub_vector = save.sub_vector,
                          .role = save.role,
                          .parameter = segment.parameter,
                          .elements = piece->elements,
                          .slice_begin = piece->slice_begin});
      }
    }
  });
  return pieces;
}

auto DescribeState(const Plan& plan, const LeftToBase& left, Manifest& manifest) -> void {
  manifest.mesh = plan.mesh;
  manifest.base = left.base;
  manifest.version = left.base ? Manifest::HasBase : Manifest::DigestsBlocks;
  for (const Parameter& parameter : plan.parameters) {
    manifest.tensors[parameter.name] = {
        .shape = parameter.shape, .dtype = parameter.dtype, .first_update = parameter.first_update};
  }
  for (const SubVectorId id : plan.sub_vectors.ids()) {
    const auto index = static_cast<int64_t>(manifest.layouts.size());
    manifest.layouts.push_back(LayoutOf(plan.sub_vectors[id]));
    for (const Segment& segment : plan.sub_vectors[id].segments) {
      const Parameter& parameter = plan.parameters[segment.parameter];
      ManifestTensor& tensor = manifest.tensors[parameter.name];
      if (const auto in_base = left.tensors.find(parameter.name); in_base != left.tensors.end()) {
        tensor.in_base = in_base->second;
        continue;
      }
      tensor.layout = index;
      tensor.begin = segment.begin;
      tensor.cut_dim = CutDim(parameter, plan.mesh);
    }
  }
  ForEachSavedShard(plan, [&](const auto& save) {
    manifest.layouts[static_cast<size_t>(save.sub_vector.index)].roles.insert(save.role);
  });
}

}  // namespace shardc
