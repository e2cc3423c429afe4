// Token ids are the one kind of data that becomes an address: what takes them as row numbers has a row for each id that
// the loader lets through, and reads nothing but what the loader wrote. Ops on a stretch of the vocabulary name the
// axes that it is cut over.
#include <optional>

#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

/// A matrix whose rows or columns are the vocabulary, or a rank's stretch of it.
struct VocabUse {
  ValueId matrix;
  bool by_rows = false;
  /// Each rank of these has as many rows or columns of its own.
  AxisSet axes;
  /// The value that holds ids, which pick from them; unset where none do.
  ValueId ids = {};
  std::string_view field = {};
  /// Whose targets and vocabulary.
  HeadId head = {};
  /// Targets may be -1, which says that there is none; as tokens they would be an address.
  bool as_tokens = false;

  auto dim(const Plan& plan) const -> size_t { return by_rows ? 0 : plan.values[matrix].shape.size() - 1; }
  auto num_ids(const Plan& plan) const -> int64_t {
    const Dims& shape = plan.values[matrix].shape;
    return shape.empty() ? 0 : shape[dim(plan)];
  }
};

auto VocabUseOf(const Op& op) -> std::optional<VocabUse> {
  if (const auto* own = op.As<op::Embedding>()) {
    return VocabUse{own->weight, true, own->vocab_axes, own->tokens, "tokens", {}, true};
  }
  if (const auto* own = op.As<op::EmbeddingBackward>()) {
    return VocabUse{own->dweight, true, own->vocab_axes, own->tokens, "tokens", {}, true};
  }
  if (const auto* own = op.As<op::LogSumExp>()) {
    return VocabUse{own->logits, false, own->vocab_axes, {}, {}, own->head};
  }
  if (const auto* own = op.As<op::CrossEntropy>()) {
    return VocabUse{own->logits, false, {}, own->targets, "targets", own->head};
  }
  if (const auto* own = op.As<op::ShardedCrossEntropy>()) {
    return VocabUse{own->logits, false, own->vocab_axes, own->targets, "targets", own->head};
  }
  if (const auto* own = op.As<op::CrossEntropyBackward>()) {
    return VocabUse{own->logits, false, own->vocab_axes, own->targets, "targets", own->head};
  }
  return std::nullopt;
}

}  // namespace

auto VerifyTokens(const Plan& plan, Findings& findings) -> void {
  struct Source {
    bool tokens = false;
    bool targets = false;
    bool others = false;
    /// Of the targets.
    HeadId head;
  };
  std::vector<Source> sources(static_cast<size_t>(plan.buffers.size()));
  const auto at = [&](ValueId id) -> Source& { return sources[static_cast<size_t>(plan.values[id].buffer.index)]; };
  const auto fills_with_targets = [&](ValueId targets, HeadId head) {
    Source& source = at(targets);
    // Of two heads, each would take the other's for its own.
    source.others = source.others || (source.targets && source.head != head);
    source.targets = true;
    source.head = head;
  };
  struct Taker {
    SectionKind section;
    size_t index;
    VocabUse use;
  };
  std::vector<Taker> takers;
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    if (const auto* load = op.As<op::LoadTokens>()) {
      at(load->tokens).tokens = true;
      fills_with_targets(load->targets, load->head);
      return;
    }
    if (const auto* load = op.As<op::LoadTargets>()) {
      fills_with_targets(load->targets, load->head);
      return;
    }
    for (const Access& access : AccessesOf(op.body)) {
      if (access.kind != AccessKind::Read) {
        at(access.value).others = true;
      }
    }
    if (const auto use = VocabUseOf(op)) {
      takers.push_back({section, index, *use});
    }
  });
  for (const auto& [section, index, use] : takers) {
    if (plan.Established(PassKind::Place)) {
      const Placement cut = Placement::Shard(static_cast<int>(use.dim(plan)));
      if (const AxisSet axes = Spread(plan.mesh, AxesPlaced(plan.values[use.matrix].placement, cut));
          axes != use.axes) {
        findings.AddOp(section, index, "vocab-axes"_rule, "takes the vocabulary as cut over {}, %{} is over {}",
                       ToText(use.axes), use.matrix.index, ToText(axes));
        // How many rows there are together follows from the axes.
        continue;
      }
    }
    if (!use.ids.valid()) {
      continue;
    }
    const Source& source = at(use.ids);
    if (source.others || (!source.tokens && !source.targets) || (use.as_tokens && source.targets) ||
        (source.targets && source.head != use.head)) {
      findings.AddOp(section, index, "token-source"_rule,
                     "{} lies in ${}, which the loader alone does not fill with {}{}", use.field,
                     plan.values[use.ids].buffer.index, use.field,
                     use.head.valid() ? " of " + plan.heads[use.head].name : "");
    }
    const int64_t ranks = plan.mesh.size(use.axes);
    if (use.num_ids(plan) < CeilDiv(VocabOf(plan, use.head), ranks)) {
      findings.AddOp(section, index, "vocab-rows"_rule, "picks from {} rows on each of {} ranks, ids run to {}",
                     use.num_ids(plan), ranks, VocabOf(plan, use.head) - 1);
    }
  }
}

}  // namespace shardc
