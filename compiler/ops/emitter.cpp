#include "compiler/ops/emitter.h"
#include "compiler/ops/op_facts.h"

namespace shardc {

auto Emitter::New(const ValueType& type, Category category, std::string name, Arena arena) -> ValueId {
  const Bytes bytes{NumElements(type.shape) * SizeOf(type.dtype)};
  const BufferId buffer =
      plan_->buffers.Add({.name = name, .arena = arena, .category = category, .bytes = bytes, .offset = -1});
  return View(buffer, RankExpr{}, type, std::move(name));
}

auto Emitter::Alias(ValueId of, const ValueType& type, std::string name) -> ValueId {
  const Value& base = plan_->values[of];
  const ValueRole role = base.role;
  const ValueId alias = View(base.buffer, base.offset, type, std::move(name));
  plan_->values[alias].role = role;
  return alias;
}

auto Emitter::View(BufferId buffer, RankExpr offset, const ValueType& type, std::string name) -> ValueId {
  return plan_->values.Add({.buffer = buffer,
                            .offset = std::move(offset),
                            .dtype = type.dtype,
                            .shape = type.shape,
                            .placement = {},
                            .name = std::move(name),
                            .role = {}});
}

/// Peers read these operands, so they lie where peers can.
static auto ShareOperand(const OpBody& body, Plan& plan) -> void {
  if (PeersRead(body, plan)) {
    Arena& arena = plan.buffers[plan.values[AccessesOf(body).front().value].buffer].arena;
    arena = arena == Arena::Transient ? Arena::SharedTransient : arena;
  }
}

auto Emitter::Emit(OpBody body) -> Op& {
  ShareOperand(body, *plan_);
  ops_->push_back(Op{.body = std::move(body),
                     .stream = Stream::Compute,
                     .waits = {},
                     .signals = {},
                     .when = {},
                     .layer = layer_,
                     .phase = phase_,
                     .origin = origin_,
                     .made_by = pass_});
  return ops_->back();
}

}  // namespace shardc
