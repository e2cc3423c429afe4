// Placements: what is one rank's term of a sum is read by the collective that makes it whole, or added to other terms, and
// by nothing else; no collective sums what its ranks have whole; and ops on a stretch of the vocabulary name the axes that
// it is cut over.
#include <optional>

#include "compiler/ops/verify_internal.h"

namespace shardc {

/// The axes, of more than one rank, along which a value is a term of a sum.
static auto PartialAxes(const Plan& plan, ValueId id) -> AxisSet {
  AxisSet axes;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (plan.values[id].placement[static_cast<size_t>(i)].kind == PlacementKind::Partial && plan.mesh.size(axis) > 1) {
      axes = axes | AxisSet::Of(axis);
    }
  }
  return axes;
}

/// The axes, of more than one rank, over which an op sums a value of its.
static auto SummedAxes(const Plan& plan, const Op& op) -> AxisSet {
  AxisSet named;
  if (const auto* scatter = op.As<op::ReduceScatter>()) {
    named = scatter->axes;
  } else if (const auto* reduce = op.As<op::AllReduce>()) {
    named = reduce->axes;
  }
  AxisSet axes;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    axes = named.Has(axis) && plan.mesh.size(axis) > 1 ? axes | AxisSet::Of(axis) : axes;
  }
  return axes;
}

/// The matrix of an op whose rows or columns are the vocabulary, the dim of it that is, and the axes that the op names.
struct VocabUse {
  ValueId matrix;
  bool rows = false;
  AxisSet axes;
};

static auto VocabUseOf(const Op& op) -> std::optional<VocabUse> {
  if (const auto* own = op.As<op::Embedding>()) {
    return VocabUse{own->weight, true, own->vocab_axes};
  }
  if (const auto* own = op.As<op::EmbeddingBackward>()) {
    return VocabUse{own->dweight, true, own->vocab_axes};
  }
  if (const auto* own = op.As<op::LogSumExp>()) {
    return VocabUse{own->logits, false, own->vocab_axes};
  }
  if (const auto* own = op.As<op::ShardedCrossEntropy>()) {
    return VocabUse{own->logits, false, own->vocab_axes};
  }
  if (const auto* own = op.As<op::CrossEntropyBackward>()) {
    return VocabUse{own->logits, false, own->vocab_axes};
  }
  return std::nullopt;
}

/// The axes, of more than one rank, over which a dim of a value is cut.
static auto CutAxes(const Plan& plan, ValueId id, bool rows) -> AxisSet {
  const auto last = static_cast<int>(plan.values[id].shape.size()) - 1;
  AxisSet axes;
  for (int i = 0; i < NumAxes; ++i) {
    const auto axis = static_cast<Axis>(i);
    if (plan.values[id].placement[static_cast<size_t>(i)] == Placement::Shard(rows ? 0 : last) &&
        plan.mesh.size(axis) > 1) {
      axes = axes | AxisSet::Of(axis);
    }
  }
  return axes;
}

auto VerifyPlacements(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Place)) {
    return;
  }
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    if (const auto use = VocabUseOf(op)) {
      if (const AxisSet cut = CutAxes(plan, use->matrix, use->rows); cut != use->axes) {
        findings.AddOp(section, index, "vocab-axes", "takes the vocabulary as cut over {}, %{} is over {}",
                       ToText(use->axes), use->matrix.index, ToText(cut));
      }
    }
    // Terms may go on from pass to pass of a loop as they are.
    if (op.As<op::Carry>() != nullptr) {
      return;
    }
    const AxisSet summed = SummedAxes(plan, op);
    const auto accesses = AccessesOf(op.body);
    // The result of a collective, or of an addition, may be a term of a sum over more axes.
    AxisSet left = summed;
    if (summed != AxisSet{} || op.As<op::Add>() != nullptr) {
      for (const Access& access : accesses) {
        left = access.kind == AccessKind::Read ? left : left | PartialAxes(plan, access.value);
      }
    }
    for (const Access& access : accesses) {
      if (access.kind != AccessKind::Read) {
        continue;
      }
      const AxisSet partial = PartialAxes(plan, access.value);
      if ((partial | left) != left) {
        findings.AddOp(section, index, "partial-read", "reads {}, which is a term of a sum over {}", access.field,
                       ToText(partial));
      } else if ((partial | summed) != partial) {
        findings.AddOp(section, index, "whole-summed", "sums {} over {}; it is a term over {}", access.field,
                       ToText(summed), ToText(partial));
      }
    }
  });
}

}  // namespace shardc
