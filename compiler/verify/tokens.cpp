// Token ids are the one kind of data that becomes an address: what takes them as row numbers has a row for each id that
// the loader lets through, and reads nothing but what the loader wrote. Ops on a rank's range of the vocabulary name
// the axes that it is cut over.
#include <optional>

#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// A matrix whose rows or columns are the vocabulary, or a rank's range of it.
struct VocabUse {
  const VocabularyFact* fact;
  ValueId matrix;
  /// Each rank of these has as many rows or columns of its own.
  AxisSet axes;
  /// The value that holds ids, which pick from them; unset where none do.
  ValueId ids;
  /// The head that the targets and the vocabulary belong to.
  HeadId head;

  auto dim(const Plan& plan) const -> size_t { return fact->by_rows ? 0 : plan.values[matrix].shape.size() - 1; }
  auto num_ids(const Plan& plan) const -> int64_t {
    const Dims& shape = plan.values[matrix].shape;
    return shape.empty() ? 0 : shape[dim(plan)];
  }
};

auto VocabUseOf(const Op& op) -> std::optional<VocabUse> {
  const VocabularyFact& fact = FactsOf(op).vocabulary;
  if (!fact.is_set()) {
    return std::nullopt;
  }
  const auto* axes = AttributeOf<AxisSet>(op.body, "vocab_axes");
  const auto* head = AttributeOf<HeadId>(op.body, "head");
  return VocabUse{.fact = &fact,
                  .matrix = ValueIn(op.body, fact.matrix),
                  .axes = axes == nullptr ? AxisSet{} : *axes,
                  .ids = fact.ids.empty() ? ValueId{} : ValueIn(op.body, fact.ids),
                  .head = head == nullptr ? HeadId{} : *head};
}

}  // namespace

auto VerifyTokens(const Plan& plan, Findings& findings) -> void {
  struct Source {
    bool tokens = false;
    bool targets = false;
    bool others = false;
    /// The head that the targets belong to.
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
    if (const auto load = SampleLoadOf(op)) {
      if (load->tokens.valid()) {
        at(load->tokens).tokens = true;
      }
      if (load->targets.valid()) {
        fills_with_targets(load->targets, load->head);
      }
      for (const ValueId documents : {load->starts, load->positions}) {
        if (documents.valid()) {
          at(documents).others = true;
        }
      }
      return;
    }
    for (const Access& access : findings.AccessesOf(section, index)) {
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
        findings.AddOp(section, index, "vocab-axes"_rule, "takes the vocabulary as cut over {}, {} is over {}",
                       ToText(use.axes), findings.Name(use.matrix), ToText(axes));
        // How many rows there are together follows from the axes.
        continue;
      }
    }
    if (!use.ids.valid()) {
      continue;
    }
    const Source& source = at(use.ids);
    if (source.others || (!source.tokens && !source.targets) || (use.fact->as_tokens && source.targets) ||
        (source.targets && source.head != use.head)) {
      findings.AddOp(section, index, "token-source"_rule,
                     "{} lies in {}, which the loader alone does not fill with {}{}", use.fact->ids,
                     findings.Name(plan.values[use.ids].buffer), use.fact->ids,
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
