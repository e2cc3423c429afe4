// Each op has a vector clock: of each stream, the last op that is over before it begins. A product runs beside a
// collective if neither is in the other's clock. Compute's clocks grow from op to op, so the first product that the
// collective does not follow decides.
#include "compiler/cost/overlap.h"

#include <algorithm>

#include "compiler/base/devices.h"
#include "compiler/base/text/joined.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cost/fold.h"
#include "compiler/ops/op_facts.h"
#include "compiler/ops/ops.h"
#include "compiler/plan/stream_clock.h"

namespace shardc {

namespace {

struct Moment {
  const Op* op = nullptr;
  StreamClock clock{};

  auto time(Stream stream) const -> int64_t { return clock[static_cast<size_t>(stream)]; }
};

auto IsProduct(const Op& op, const Plan& plan) -> bool {
  return VisitBody(op.body, [&](const auto& body) { return Cost(body, plan).matmul_flops.value > 0; });
}

auto AddTo(std::vector<OverlapUse>& uses, const Collective& collective, const std::string& name, bool is_beside)
    -> void {
  auto use = std::ranges::find_if(uses, [&](const OverlapUse& other) {
    return other.op == collective.kind && other.axes == collective.axes && other.is_beside_compute == is_beside;
  });
  if (use == uses.end()) {
    use = uses.insert(
        use, {.op = collective.kind, .axes = collective.axes, .is_beside_compute = is_beside, .count = 0, .names = {}});
  }
  use->count += 1;
  if (std::ranges::find(use->names, name) == use->names.end()) {
    use->names.push_back(name);
  }
}

}  // namespace

auto OverlapsOf(const Plan& plan) -> std::vector<OverlapUse> {
  if (!FactsOf(plan.device).overlaps_streams || !plan.Established(PassKind::Synchronize)) {
    return {};
  }
  std::array<StreamClock, NumStreams> streams{};
  std::vector<StreamClock> events(static_cast<size_t>(plan.num_events));
  std::vector<Moment> products;
  std::vector<Moment> collectives;
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    StreamClock& clock = streams[static_cast<size_t>(op.stream)];
    for (const EventId event : op.waits) {
      Join(clock, events[static_cast<size_t>(event.index)]);
    }
    ++clock[static_cast<size_t>(op.stream)];
    if (op.signals.valid()) {
      events[static_cast<size_t>(op.signals.index)] = clock;
    }
    if (CollectiveOf(op)) {
      collectives.push_back({&op, clock});
    } else if (op.stream == Stream::Compute && IsProduct(op, plan)) {
      products.push_back({&op, clock});
    }
  }
  std::vector<OverlapUse> uses;
  for (const Moment& moment : collectives) {
    const Stream stream = moment.op->stream;
    const auto product = std::ranges::partition_point(
        products, [&](const Moment& other) { return other.time(Stream::Compute) <= moment.time(Stream::Compute); });
    const bool is_beside =
        stream != Stream::Compute && product != products.end() && product->time(stream) < moment.time(stream);
    const auto collective = CollectiveOf(*moment.op);
    AddTo(uses, *collective, plan.values[collective->to].name, is_beside);
  }
  return uses;
}

/// Returns names in the order of their first, those of blocks told once; after a few, how many more there are.
static auto NamesText(const std::vector<std::string>& names) -> std::string {
  constexpr size_t MostPatterns = 4;
  std::vector<std::vector<std::string>> groups;
  for (const std::string& name : names) {
    const auto is_alike = [&](const auto& group) { return Numbered(group.front()).pattern == Numbered(name).pattern; };
    const auto group = std::ranges::find_if(groups, is_alike);
    group == groups.end() ? groups.push_back({name}) : group->push_back(name);
  }
  std::vector<std::string> folded;
  for (auto& group : groups) {
    std::ranges::stable_sort(group, {}, [](const std::string& name) { return Numbered(name).number; });
    folded.push_back(FoldNames(group));
  }
  return Listed(folded, MostPatterns) + (groups.size() > MostPatterns ? " of a block" : "");
}

auto OverlapsText(const std::vector<OverlapUse>& uses) -> std::string {
  std::string text;
  for (const bool is_beside : {true, false}) {
    for (const OverlapUse& use : uses) {
      if (use.is_beside_compute == is_beside) {
        text += Wrapped(fmt::format("  {} compute: {} {} over {}: {}", is_beside ? "beside" : "apart from", use.count,
                                    ToText(use.op), ToText(use.axes), NamesText(use.names)),
                        4);
      }
    }
  }
  return text;
}

}  // namespace shardc
