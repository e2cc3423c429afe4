#include "compiler/ops/communicators.h"

#include <set>
#include <vector>

#include "compiler/ops/op_facts.h"
#include "compiler/plan/exchange.h"

namespace shardc {

auto ExchangedSets(const Plan& plan, bool agree) -> ByAxisSet<bool> {
  ByAxisSet<bool> sets{};
  for (const Section& section : plan.sections) {
    for (const Op& op : section.ops) {
      const CollectiveKind kind = FactsOf(op).collective;
      if (kind != CollectiveKind::None && (kind == CollectiveKind::Agree) == agree) {
        const AxisSet axes = *AttributeOf<AxisSet>(op.body, "axes");
        sets[axes.bits] = ExchangeOf(plan, axes).crosses();
      }
    }
  }
  return sets;
}

auto NcclCommunicatorsOf(const Plan& plan) -> NcclCommunicators {
  if (!IsByNccl(plan.run.comm)) {
    return {};
  }
  const ByAxisSet<bool> sets = ExchangedSets(plan, /*agree=*/false);
  std::set<std::vector<int64_t>> groups;
  for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
    if (sets[bits]) {
      groups.insert(RemoteRanks(plan, AxisSet{bits}, 0));
    }
  }
  return {.count = std::ssize(groups), .exchange = plan.run.comm != Comm::NcclRing};
}

}  // namespace shardc
