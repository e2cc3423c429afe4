#include "runtime/core/compare_traffic.h"

#include <vector>

#include "compiler/ops/communication.h"

namespace shardc {

auto PlannedTraffic(const Plan& plan, const SectionRuns& runs) -> TrafficTable {
  TrafficTable planned;
  for (int i = 0; i < NumSections; ++i) {
    const int64_t times = runs[static_cast<size_t>(i)];
    for (const Communication& row : CommunicationOf(plan, static_cast<SectionKind>(i))) {
      Traffic& traffic = planned.At(row.op, row.axes);
      traffic.calls += row.count * times;
      traffic.payload += row.payload.value * times;
      const int64_t num_groups = plan.mesh.num_ranks() / plan.mesh.size(row.axes);
      traffic.wire += row.group.all.value * num_groups * times;
      traffic.between_hosts += row.group.between_hosts.value * num_groups * times;
    }
  }
  return planned;
}

static auto Figures(const Traffic& traffic) -> std::string {
  return fmt::format("{} calls of {} B, {} B on the wire of all ranks, {} B of it between hosts", traffic.calls,
                     traffic.payload, traffic.wire, traffic.between_hosts);
}

/// Calls `function(kind, axes)` for each row, in the table's order.
template <class Function>
static auto ForEachRow(const Function& function) -> void {
  for (size_t kind = 0; kind < CountOf<CollectiveKind>(); ++kind) {
    for (uint8_t bits = 0; bits < NumAxisSets; ++bits) {
      function(static_cast<CollectiveKind>(kind), AxisSet{bits});
    }
  }
}

auto CompareTraffic(const Communicator& comm, RankControl& control, const TrafficTable& planned)
    -> ErrorOr<std::string> {
  const Traffic beside = control.traffic();
  TrafficTable counted = comm.traffic();
  TrafficTable expected = planned;
  std::vector<int64_t> wires;
  ForEachRow([&](CollectiveKind kind, AxisSet axes) {
    wires.push_back(counted.At(kind, axes).wire);
    wires.push_back(counted.At(kind, axes).between_hosts);
  });
  RETURN_IF_ERROR(
      control.Sum(AxisSet::All(), reinterpret_cast<std::byte*>(wires.data()), std::ssize(wires), DType::I64));
  Traffic sum;
  std::string difference;
  size_t row = 0;
  ForEachRow([&](CollectiveKind kind, AxisSet axes) {
    Traffic& here = counted.At(kind, axes);
    sum.Add(here);
    here.wire = wires[row++];
    here.between_hosts = wires[row++];
    if (const Traffic& there = expected.At(kind, axes); difference.empty() && here != there) {
      difference = fmt::format("{} over {}: the communicator counted {}; the plan has {}", ToText(kind), ToText(axes),
                               Figures(here), Figures(there));
    }
  });
  if (!difference.empty()) {
    return Fail(ExitCode::InternalFault, "what was sent is not what the plan says, {}; this is a bug in shardc",
                difference);
  }
  const auto memory = [](int64_t bytes) { return FormatMemory(Bytes{bytes}); };
  const std::string to_hosts =
      control.mesh().hosts == 1 ? "" : fmt::format(" ({} of it to other hosts)", memory(sum.between_hosts));
  return fmt::format("rank {} sent {}{} in {} collectives, as planned (payload {}), and {} in {} control messages\n",
                     control.rank(), memory(sum.wire), to_hosts, sum.calls, memory(sum.payload), memory(beside.wire),
                     beside.calls);
}

}  // namespace shardc
