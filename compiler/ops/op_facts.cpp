#include "compiler/ops/op_facts.h"

#include <concepts>

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
  const auto* head = AttributeOf<HeadId>(op.body, "head");
  const ValueId positions = ValueIn(op.body, "positions");
  return SampleLoad{.split = *AttributeOf<Split>(op.body, "split"),
                    .sample = AttributeOf<RankExpr>(op.body, "sample"),
                    .head = head == nullptr ? HeadId{} : *head,
                    .tokens = ValueIn(op.body, "tokens"),
                    .targets = ValueIn(op.body, "targets"),
                    // Other loads read it.
                    .starts = positions.valid() ? ValueIn(op.body, "starts") : ValueId{},
                    .positions = positions};
}

namespace {

/// Every scalar that an op names has a fact.
struct ScalarCollector : IgnoreFields {
  explicit ScalarCollector(const OpFacts& the_facts) : facts(the_facts) {}
  const OpFacts& facts;
  ScalarUses uses = {};
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::same_as<T, ScalarId>) {
      const auto* fact = std::ranges::find(facts.scalars, name, &ScalarFact::field);
      CHECK(fact != facts.scalars.end(), "no fact says what an op does with its scalar {}", name);
      if (fact->is_optional && !value.valid()) {
        return;
      }
      uses.push_back({name, value, fact->effect, fact->role});
    }
  }
};

}  // namespace

auto ScalarsOf(const Op& op) -> ScalarUses {
  if (!HasAttribute<ScalarId>[op.body.index()]) {
    return {};
  }
  ScalarCollector collector(FactsOf(op));
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, collector); });
  return collector.uses;
}

auto StateTouchOf(const Op& op) -> StateTouch {
  const auto* role = AttributeOf<StateRole>(op.body, "role");
  return {.sub_vector = *AttributeOf<SubVectorId>(op.body, "sub_vector"),
          .role = role == nullptr ? StateRole::Parameter : *role,
          .value = ValueIn(op.body, "shard")};
}

}  // namespace shardc
