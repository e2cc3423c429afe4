// Token ids are the one kind of data that becomes an address: what takes them as row numbers has a row for each id that
// the loader lets through, and reads nothing but what the loader wrote.
#include <optional>

#include "compiler/ops/verify_internal.h"

namespace shardc {

namespace {

/// Where an op takes ids: the value that holds them, and how many rows it may pick from.
struct IdUse {
  ValueId ids;
  std::string_view field;
  int64_t rows = 0;
  /// Targets may be -1, which says that there is none; as tokens they would be an address.
  bool as_tokens = false;
  /// Each rank of these has as many rows of its own.
  AxisSet axes;
};

auto FirstDim(const Plan& plan, ValueId id) -> int64_t {
  return plan.values[id].shape.empty() ? 0 : plan.values[id].shape.front();
}
auto LastDim(const Plan& plan, ValueId id) -> int64_t {
  return plan.values[id].shape.empty() ? 0 : plan.values[id].shape.back();
}

auto IdUseOf(const Plan& plan, const Op& op) -> std::optional<IdUse> {
  if (const auto* own = op.As<op::Embedding>()) {
    return IdUse{own->tokens, "tokens", FirstDim(plan, own->weight), true, own->vocab_axes};
  }
  if (const auto* own = op.As<op::EmbeddingBackward>()) {
    return IdUse{own->tokens, "tokens", FirstDim(plan, own->dweight), true, own->vocab_axes};
  }
  if (const auto* own = op.As<op::CrossEntropy>()) {
    return IdUse{own->targets, "targets", LastDim(plan, own->logits), false, {}};
  }
  if (const auto* own = op.As<op::ShardedCrossEntropy>()) {
    return IdUse{own->targets, "targets", LastDim(plan, own->logits), false, own->vocab_axes};
  }
  if (const auto* own = op.As<op::CrossEntropyBackward>()) {
    return IdUse{own->targets, "targets", LastDim(plan, own->logits), false, own->vocab_axes};
  }
  return std::nullopt;
}

}  // namespace

auto VerifyTokens(const Plan& plan, Findings& findings) -> void {
  struct Source {
    bool tokens = false;
    bool targets = false;
    bool others = false;
  };
  std::vector<Source> sources(static_cast<size_t>(plan.buffers.size()));
  const auto at = [&](ValueId id) -> Source& { return sources[static_cast<size_t>(plan.values[id].buffer.index)]; };
  struct Taker {
    SectionKind section;
    size_t index;
    IdUse use;
  };
  std::vector<Taker> takers;
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    if (const auto* load = op.As<op::LoadTokens>()) {
      at(load->tokens).tokens = true;
      at(load->targets).targets = true;
      return;
    }
    for (const Access& access : AccessesOf(op.body)) {
      if (access.kind != AccessKind::Read) {
        at(access.value).others = true;
      }
    }
    if (const auto use = IdUseOf(plan, op)) {
      takers.push_back({section, index, *use});
    }
  });
  for (const auto& [section, index, use] : takers) {
    const Source& source = at(use.ids);
    if (source.others || (!source.tokens && !source.targets) || (use.as_tokens && source.targets)) {
      findings.AddOp(section, index, "token-source", "{} lies in ${}, which load_tokens alone does not fill with {}",
                     use.field, plan.values[use.ids].buffer.index, use.field);
    }
    const int64_t ranks = plan.mesh.size(use.axes);
    if (use.rows < CeilDiv(plan.data.vocab, ranks)) {
      findings.AddOp(section, index, "vocab-rows", "picks from {} rows on each of {} ranks, ids run to {}", use.rows,
                     ranks, plan.data.vocab - 1);
    }
  }
}

}  // namespace shardc
