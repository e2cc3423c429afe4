#include "compiler/ops/communication.h"

#include <map>
#include <tuple>

#include "compiler/ops/op_facts.h"
#include "compiler/ops/ops.h"
#include "compiler/plan/loops.h"

namespace shardc {

auto CommunicationOf(const Plan& plan, SectionKind section) -> std::vector<Communication> {
  return CommunicationOf(plan, section, [](const Op&) { return true; });
}

auto CommunicationOf(const Plan& plan, SectionKind section, const std::function<bool(const Op&)>& is_counted)
    -> std::vector<Communication> {
  std::vector<Communication> communication;
  std::map<std::tuple<CollectiveKind, uint8_t, DType>, size_t> rows;
  LoopTracker loops;
  for (const Op& op : plan.section(section).ops) {
    loops.Enter(op);
    if (!is_counted(op)) {
      continue;
    }
    const OpCost cost = VisitBody(op.body, [&](const auto& body) { return Cost(body, plan); });
    const CollectiveKind kind = FactsOf(op).collective;
    for (const WireCost& wire : cost.wires) {
      const auto [row, fresh] = rows.try_emplace({kind, wire.axes.bits, wire.dtype}, communication.size());
      if (fresh) {
        communication.push_back({.op = kind, .axes = wire.axes, .dtype = wire.dtype});
      }
      Communication& sum = communication[row->second];
      sum.count += loops.count();
      sum.payload += wire.payload * loops.count();
      sum.group.all += wire.group.all * loops.count();
      sum.group.between_hosts += wire.group.between_hosts * loops.count();
    }
  }
  return communication;
}

}  // namespace shardc
