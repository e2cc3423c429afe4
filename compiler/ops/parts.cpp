#include "compiler/ops/parts.h"

#include <algorithm>

namespace shardc {

namespace {

template <class T>
concept IsFused = requires(const T& op, PartsContext& context) {
  Parts(op, context);
};

/// Writes the ops of one section.
class PartsWriter : public PartsContext {
 public:
  PartsWriter(Plan* plan, std::vector<Op>* ops, std::vector<size_t>* origins)
      : plan_(*plan), ops_(*ops), origins_(*origins) {}

  auto Write(const Op& op, size_t index) -> void {
    fused_ = &op;
    index_ = index;
    VisitBody(op.body, [&]<class Body>(const Body& body) {
      if constexpr (IsFused<Body>) {
        Parts(body, *this);
      } else {
        Emit(body);
      }
    });
  }

  auto New(ValueId like, const ValueType& type) -> ValueId override {
    Value value = plan_.values[like];
    const Buffer& near = plan_.buffers[value.buffer];
    value.buffer = plan_.buffers.Add({.name = near.name,
                                      .arena = near.arena,
                                      .category = near.category,
                                      .bytes = Bytes{NumElements(type.shape) * SizeOf(type.dtype)},
                                      .offset = -1});
    value.offset = {};
    value.dtype = type.dtype;
    value.shape = type.shape;
    value.role = {};
    return plan_.values.Add(std::move(value));
  }
  auto Emit(OpBody body) -> void override { Emit(std::move(body), fused_->phase); }
  auto Emit(OpBody body, Phase phase) -> void override {
    Op part = *fused_;
    part.body = std::move(body);
    part.phase = phase;
    ops_.push_back(std::move(part));
    origins_.push_back(index_);
  }
  auto plan() const -> const Plan& override { return plan_; }

 private:
  Plan& plan_;
  std::vector<Op>& ops_;
  std::vector<size_t>& origins_;
  const Op* fused_ = nullptr;
  size_t index_ = 0;
};

}  // namespace

auto HasFusedOps(const Plan& plan) -> bool {
  return std::ranges::any_of(plan.sections, [](const Section& section) {
    return std::ranges::any_of(section.ops, [](const Op& op) {
      return VisitBody(op.body, []<class Body>(const Body&) { return IsFused<Body>; });
    });
  });
}

auto InParts(const Plan& plan) -> PlanInParts {
  PlanInParts parts{.plan = plan, .origins = {}};
  for (size_t s = 0; s < NumSections; ++s) {
    const std::vector<Op>& whole = plan.sections[s].ops;
    std::vector<Op> ops;
    ops.reserve(whole.size());
    PartsWriter writer(&parts.plan, &ops, &parts.origins[s]);
    for (size_t i = 0; i < whole.size(); ++i) {
      writer.Write(whole[i], i);
    }
    parts.plan.sections[s].ops = std::move(ops);
  }
  return parts;
}

}  // namespace shardc
