#include "compiler/ops/op_facts.h"

namespace shardc {

auto FactsOf(OpKind kind) -> const OpFacts& {
  static constexpr std::array<const OpFacts*, NumOpKinds> facts{
#define OP(Type, mnemonic, differentiable, fields, doc) &op::Type::Facts,
#include "schemas/ops.def"
  };
  return *facts[static_cast<size_t>(kind)];
}

auto ValueIn(const OpBody& body, std::string_view field) -> ValueId {
  for (const Access& access : AccessesOf(body)) {
    if (access.field == field) {
      return access.value;
    }
  }
  return {};
}

auto CollectiveOf(const Op& op) -> std::optional<Collective> {
  const CollectiveKind kind = FactsOf(op).collective;
  if (kind == CollectiveKind::None || kind == CollectiveKind::Agree) {
    return std::nullopt;
  }
  Collective collective{.kind = kind, .from = {}, .to = {}, .axes = *AttributeOf<AxisSet>(op.body, "axes")};
  for (const Access& access : AccessesOf(op.body)) {
    ValueId& end = access.kind == AccessKind::Read ? collective.from : collective.to;
    end = end.valid() ? end : access.value;
  }
  return collective;
}

auto PeersRead(const OpBody& body, const Plan& plan) -> bool {
  switch (FactsOf(body).peer_reads) {
    case PeerReads::None: return false;
    case PeerReads::Operand: return true;
    case PeerReads::IfGradients:
      return plan.buffers[plan.values[AccessesOf(body).front().value].buffer].category == Category::Gradients;
  }
  return false;
}

/// The first value that it reads and the first that it writes, of an op with this meaning.
static auto MovementOf(const Op& op, Meaning meaning) -> std::optional<Movement> {
  if (FactsOf(op).meaning != meaning) {
    return std::nullopt;
  }
  const AccessList accesses = AccessesOf(op.body);
  return Movement{.from = accesses[0].value, .to = accesses[1].value};
}

auto CopyOf(const Op& op) -> std::optional<Movement> { return MovementOf(op, Meaning::Copied); }
auto CarryOf(const Op& op) -> std::optional<Movement> { return MovementOf(op, Meaning::Renamed); }
auto CastOf(const Op& op) -> std::optional<Movement> { return MovementOf(op, Meaning::Cast); }

auto QuotientOf(const Op& op) -> std::optional<Quotient> {
  if (FactsOf(op).meaning != Meaning::Quotient) {
    return std::nullopt;
  }
  const AccessList accesses = AccessesOf(op.body);
  return Quotient{.dividend = accesses[0].value, .divisor = accesses[1].value};
}

auto ConstantOf(const Op& op) -> std::optional<double> {
  const bool is_constant = FactsOf(op).meaning == Meaning::Constant;
  return is_constant ? std::optional(*AttributeOf<double>(op.body, "value")) : std::nullopt;
}

auto SampleLoadOf(const Op& op) -> std::optional<SampleLoad> {
  if (!FactsOf(op).loads_samples) {
    return std::nullopt;
  }
  return SampleLoad{.split = *AttributeOf<Split>(op.body, "split"),
                    .sample = AttributeOf<RankExpr>(op.body, "sample"),
                    .head = *AttributeOf<HeadId>(op.body, "head"),
                    .tokens = ValueIn(op.body, "tokens"),
                    .targets = ValueIn(op.body, "targets")};
}

auto ScalarsOf(const Op& op) -> ScalarUses {
  ScalarUses uses;
  for (const ScalarFact& fact : FactsOf(op).scalars) {
    if (!fact.field.empty()) {
      uses.push_back({fact.field, *AttributeOf<ScalarId>(op.body, fact.field), fact.effect, fact.role});
    }
  }
  return uses;
}

auto StateTouchOf(const Op& op) -> StateTouch {
  const auto* role = AttributeOf<StateRole>(op.body, "role");
  return {.sub_vector = *AttributeOf<SubVectorId>(op.body, "sub_vector"),
          .role = role == nullptr ? StateRole::Parameter : *role,
          .value = ValueIn(op.body, "shard")};
}

}  // namespace shardc
