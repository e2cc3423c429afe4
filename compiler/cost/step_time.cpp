// 1. Each op has a time by itself (op_times.h).
// 2. The host launches the ops in the order of the list, and waits where an op hands it a number of the device.
// 3. Streams take their ops in turn. An op begins when it is launched and the ops are over whose events it waits for;
//    collectives that use a link at once share its bandwidth.
// A loop of many passes is followed for a few, and the last of them counts for the rest.
#include "compiler/cost/step_time.h"

#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "compiler/base/devices.h"
#include "compiler/base/mapped.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/cost/op_times.h"
#include "compiler/ops/step_flops.h"
#include "compiler/plan/header.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/triggers.h"

namespace shardc {

namespace {

constexpr std::string_view MeasuredMachine = "h100-sxm";

/// Samples are read, and a line of metrics is written. Source: the quickstart on one H100.
constexpr Seconds BetweenSteps{0.5e-3};

/// Share of their speed that ops lose while a collective runs: it takes multiprocessors and bandwidth of the memory.
/// Source: products are 30 to 40 % slower beside NCCL on H100s (pytorch #179937), so they keep 1 / 1.35 of their speed.
constexpr double LostBesideCollectives = 0.26;

/// Part of a step that ranks wait for the slowest of them, for each doubling of the hosts. Source: runs with the same
/// work per GPU lose 1.3 and 3.6 % per doubling from 8 to 40 hosts (KempnerForge, 13B and 70B), and 1.5 % from 1 to 64
/// (llm-foundry, 7B).
constexpr double StragglingOfDoubling = 0.015;

using PartTimes = std::array<double, NumStepParts>;

/// A step whose loops run a few times.
struct Unrolled {
  /// Numbers of ops in their section.
  std::vector<size_t> ops;
  /// Passes of the loop that are left out, each like the last one.
  int64_t left_out = 0;
};

}  // namespace

static auto Unroll(const std::vector<Op>& ops, int64_t most) -> Unrolled {
  Unrolled unrolled;
  size_t begin = 0;
  int64_t passes = 1;
  for (size_t number = 0; number < ops.size(); ++number) {
    const Op& op = ops[number];
    if (LoopEdgeOf(op) == LoopEdge::Begin) {
      begin = unrolled.ops.size();
      passes = LoopCountOf(op);
    }
    unrolled.ops.push_back(number);
    if (LoopEdgeOf(op) == LoopEdge::End) {
      // With the ops that begin and end it: streams wait for each other there, at each pass.
      const std::vector<size_t> pass(unrolled.ops.begin() + static_cast<int64_t>(begin), unrolled.ops.end());
      for (int64_t i = 1; i < std::min(passes, most); ++i) {
        unrolled.ops.insert(unrolled.ops.end(), pass.begin(), pass.end());
      }
      unrolled.left_out += std::max<int64_t>(passes - most, 0);
    }
  }
  return unrolled;
}

namespace {

class Simulation {
 public:
  /// Takes the times of all ops of the section.
  Simulation(const Unrolled& unrolled, const Plan& plan, const std::vector<Op>& ops, const std::vector<OpTime>& times);
  auto Run() -> PartTimes;

 private:
  struct Item {
    OpTime time;
    Stream stream = Stream::Compute;
    /// Ops whose events it waits for.
    std::vector<size_t> after;
    bool is_over = false;
  };
  static constexpr size_t Nothing = std::numeric_limits<size_t>::max();
  struct Lane {
    /// Launched ops, in order; those before `next` have begun.
    std::vector<size_t> items;
    size_t next = 0;
    size_t running = Nothing;
    Link link = Link::None;
    double left = 0;
  };

  /// Launches and begins what can be by now.
  auto Begin() -> void;
  /// Lets the op that runs work on a link, alone for so many seconds.
  auto Use(Lane& lane, Link link, double seconds) -> void;
  /// Returns the factor by which the op that runs takes longer than by itself.
  auto Slowdown(const Lane& lane) const -> double;
  /// Goes on to the next end of an op or launch.
  auto Advance() -> void;
  auto PartNow() const -> StepPart;
  auto compute() const -> const Lane& { return lanes_[static_cast<size_t>(Stream::Compute)]; }
  auto is_over() const -> bool { return num_over_ == items_.size(); }

  std::vector<Item> items_;
  std::array<Lane, NumStreams> lanes_;
  std::array<int, NumLinks> users_{};
  PartTimes parts_{};
  double now_ = 0;
  double host_free_ = 0;
  size_t launched_ = 0;
  size_t host_waits_for_ = Nothing;
  size_t num_over_ = 0;
};

}  // namespace

Simulation::Simulation(const Unrolled& unrolled, const Plan& plan, const std::vector<Op>& ops,
                       const std::vector<OpTime>& times) {
  std::vector<size_t> signalled(static_cast<size_t>(plan.num_events), Nothing);
  for (const size_t number : unrolled.ops) {
    const Op& op = ops[number];
    Item item{.time = times[number], .stream = op.stream};
    for (const EventId event : op.waits) {
      if (const size_t other = signalled[static_cast<size_t>(event.index)]; other != Nothing) {
        item.after.push_back(other);
      }
    }
    if (op.signals.valid()) {
      signalled[static_cast<size_t>(op.signals.index)] = items_.size();
    }
    items_.push_back(std::move(item));
  }
}

auto Simulation::Begin() -> void {
  while (launched_ < items_.size() && host_waits_for_ == Nothing && host_free_ <= now_) {
    const Item& item = items_[launched_];
    lanes_[static_cast<size_t>(item.stream)].items.push_back(launched_);
    host_free_ = std::max(host_free_, now_) + item.time.host;
    host_waits_for_ = item.time.host_waits ? launched_ : Nothing;
    ++launched_;
  }
  for (Lane& lane : lanes_) {
    if (lane.running != Nothing || lane.next == lane.items.size()) {
      continue;
    }
    const Item& item = items_[lane.items[lane.next]];
    if (std::ranges::all_of(item.after, [&](size_t other) { return items_[other].is_over; })) {
      lane.running = lane.items[lane.next++];
      Use(lane, item.time.link, item.time.device);
    }
  }
}

auto Simulation::Use(Lane& lane, Link link, double seconds) -> void {
  lane.link = link;
  lane.left = seconds;
  ++users_[static_cast<size_t>(link)];
}

auto Simulation::Slowdown(const Lane& lane) const -> double {
  if (lane.link != Link::None) {
    return users_[static_cast<size_t>(lane.link)];
  }
  const int collectives = users_[static_cast<size_t>(Link::InHost)] + users_[static_cast<size_t>(Link::Network)];
  return collectives > 0 ? 1 / (1 - LostBesideCollectives) : 1;
}

auto Simulation::PartNow() const -> StepPart {
  return compute().running != Nothing                                            ? items_[compute().running].time.part
         : compute().next < compute().items.size() || launched_ == items_.size() ? StepPart::Peers
                                                                                 : StepPart::Host;
}

auto Simulation::Advance() -> void {
  double time = launched_ < items_.size() && host_waits_for_ == Nothing ? host_free_ - now_
                                                                        : std::numeric_limits<double>::infinity();
  for (const Lane& lane : lanes_) {
    if (lane.running != Nothing) {
      time = std::min(time, lane.left * Slowdown(lane));
    }
  }
  CHECK(time < std::numeric_limits<double>::infinity(), "the ops of a step wait for each other");
  time = std::max(time, 0.0);
  parts_[static_cast<size_t>(PartNow())] += time;
  now_ += time;
  std::array<double, NumStreams> slowdown{};
  for (size_t i = 0; i < lanes_.size(); ++i) {
    slowdown[i] = lanes_[i].running == Nothing ? 1 : Slowdown(lanes_[i]);
  }
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (lane.running == Nothing) {
      continue;
    }
    lane.left -= time / slowdown[i];
    if (lane.left <= 1e-12) {
      Item& item = items_[lane.running];
      --users_[static_cast<size_t>(lane.link)];
      if (lane.link != Link::Network && item.time.network > 0) {
        Use(lane, Link::Network, item.time.network);
        continue;
      }
      item.is_over = true;
      ++num_over_;
      if (host_waits_for_ == lane.running) {
        host_waits_for_ = Nothing;
        host_free_ = now_ + item.time.host;
      }
      lane.running = Nothing;
    }
  }
}

auto Simulation::Run() -> PartTimes {
  while (!is_over()) {
    Begin();
    Advance();
  }
  return parts_;
}

/// Follows `passes` of each loop.
static auto Follow(const Plan& plan, const std::vector<Op>& ops, const std::vector<OpTime>& times, int64_t passes)
    -> std::pair<PartTimes, int64_t> {
  const Unrolled unrolled = Unroll(ops, passes);
  return {Simulation(unrolled, plan, ops, times).Run(), unrolled.left_out};
}

/// Returns the parts of a section.
static auto PartTimesOf(const Plan& plan, SectionKind section, const OpTimes& op_times, int64_t most_passes)
    -> PartTimes {
  const std::vector<Op>& ops = plan.section(section).ops;
  const auto times = Mapped<OpTime>(ops, [&](const Op& op) { return op_times.Of(op); });
  auto [parts, left_out] = Follow(plan, ops, times, most_passes);
  if (left_out > 0) {
    const PartTimes fewer = Follow(plan, ops, times, most_passes - 1).first;
    for (size_t i = 0; i < NumStepParts; ++i) {
      parts[i] += static_cast<double>(left_out) * (parts[i] - fewer[i]);
    }
  }
  const double doublings = std::log2(static_cast<double>(op_times.hosts()));
  parts[static_cast<size_t>(StepPart::Peers)] +=
      StragglingOfDoubling * doublings * std::accumulate(parts.begin(), parts.end(), 0.0);
  return parts;
}

/// Returns the machine whose rates hold for a plan that names none: the one that was measured.
static auto MachineOf(const Plan& plan) -> const MachineRow& {
  const MachineRow* const named = FindMachine(KeysOf(plan).run.machine.value_or(""));
  return named != nullptr ? *named : *FindMachine(MeasuredMachine);
}

auto StepTimeOf(const Plan& plan, const MachineRow* machine, int64_t most_passes) -> std::optional<StepTime> {
  if (!FactsOf(plan.device).overlaps_streams || !plan.Established(PassKind::Synchronize)) {
    return std::nullopt;
  }
  machine = machine != nullptr ? machine : &MachineOf(plan);
  const OpTimes op_times(plan, *machine);
  const PartTimes parts = PartTimesOf(plan, SectionKind::Step, op_times, most_passes);
  const auto seconds = [&](StepPart part) { return Seconds{parts[static_cast<size_t>(part)]}; };
  StepTime time{.machine = machine,
                .products = seconds(StepPart::Product),
                .attention = seconds(StepPart::Attention),
                .others = seconds(StepPart::Other),
                .peers = seconds(StepPart::Peers),
                .host = seconds(StepPart::Host) + BetweenSteps,
                .num_evaluations = NumFires(plan, SectionKind::Eval, 1),
                .ranks = plan.mesh.num_ranks(),
                .mesh = plan.mesh,
                .assumed_of_host = op_times.assumed_of_host()};
  if (time.num_evaluations > 0) {
    const PartTimes of_evaluation = PartTimesOf(plan, SectionKind::Eval, op_times, most_passes);
    time.evaluation = Seconds{std::accumulate(of_evaluation.begin(), of_evaluation.end(), 0.0)};
  }
  time.mfu = static_cast<double>(StepFlopsOf(plan).model.value) / (time.step().value * machine->peak_bf16.value);
  return time;
}

auto FormatTime(Seconds time) -> std::string {
  const double us = time.value * 1e6;
  const auto [scale, unit] = us < 999.5     ? std::pair(1.0, "us")
                             : us < 999.5e3 ? std::pair(1e-3, "ms")
                                            : std::pair(1e-6, "s");
  const double value = us * scale;
  return fmt::format("{:.{}f} {}", value, us < 999.5 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2, unit);
}

auto FormatStep(const StepTime& time) -> std::string {
  if (time.uncertainty() == 0) {
    return FormatTime(time.step());
  }
  std::string least = FormatTime(time.least());
  const std::string most = FormatTime(time.most());
  const std::string unit = most.substr(most.find(' '));
  if (least.ends_with(unit)) {
    least.resize(least.size() - unit.size());
  }
  return fmt::format("{} ({} to {})", FormatTime(time.step()), least, most);
}

auto CaveatOf(const StepTime& time) -> std::string {
  std::vector<std::string> parts;
  if (time.machine->name != MeasuredMachine) {
    parts.push_back(fmt::format("rates are those of {} by their share of the peaks", MeasuredMachine));
  }
  if (time.ranks > 1) {
    parts.emplace_back("rates between ranks are those of published runs");
  }
  if (time.assumed_of_host > 0) {
    parts.push_back(fmt::format("hosts of {} are assumed, as mesh.hosts names none", time.assumed_of_host));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

auto StepTimeText(const StepTime& time, const Plan& plan) -> std::string {
  const double tokens = static_cast<double>(plan.run.tokens_per_step) / time.step().value;
  const std::string caveat = CaveatOf(time);
  return fmt::format("step on {}, estimated: {}, {} tokens/s, MFU {:.1f} %\n", time.machine->name, FormatStep(time),
                     Grouped(std::llround(tokens)), 100 * time.mfu) +
         fmt::format("  products {}, attention {}, other ops {}\n", FormatTime(time.products),
                     FormatTime(time.attention), FormatTime(time.others)) +
         fmt::format("  {} {}, host {}\n", time.ranks > 1 ? "communication not hidden" : "waits between streams",
                     FormatTime(time.peers), FormatTime(time.host)) +
         (caveat.empty() ? "" : Wrapped("  " + caveat, 4));
}

}  // namespace shardc
