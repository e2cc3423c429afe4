#include "compiler/ops/communication.h"

#include <map>
#include <tuple>

#include "compiler/ops/ops.h"

namespace shardc {

auto CommunicationOf(const Plan& plan, SectionKind section) -> std::vector<Communication> {
  std::vector<Communication> communication;
  std::map<std::tuple<OpKind, uint8_t, DType>, size_t> rows;
  std::vector<int64_t> times{1};
  for (const Op& op : plan.section(section).ops) {
    if (const auto* repeat = op.As<op::Repeat>()) {
      times.push_back(times.back() * repeat->count);
    } else if (op.As<op::EndRepeat>() != nullptr) {
      times.pop_back();
    }
    const OpCost cost = VisitBody(op.body, [&](const auto& body) { return Cost(body, plan); });
    for (const WireCost& wire : cost.wires) {
      const auto [row, fresh] = rows.try_emplace({op.kind(), wire.axes.bits, wire.dtype}, communication.size());
      if (fresh) {
        communication.push_back({.op = op.kind(), .axes = wire.axes, .dtype = wire.dtype});
      }
      Communication& sum = communication[row->second];
      sum.count += times.back();
      sum.payload += wire.payload * times.back();
      sum.group_wire += wire.group_wire * times.back();
    }
  }
  return communication;
}

}  // namespace shardc
