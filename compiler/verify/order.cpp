// Order over streams: two ops that touch the same bytes, the same scalar or the checkpoint that is written, and do not
// both only read, are ordered by their stream or by a chain of signals and waits. A life ends for another op by such an
// order, not because the release comes first in the list.
//
// Each op has a vector clock: the join of the clocks of the op before it on its stream and of the ops whose signals it
// waits for. Per byte range the last writer and the last reader of each stream are kept; the next op to touch the range
// knows of them by its clock, or an event is missing. After `allocate` the ranges are those of arenas, so that the next
// tenant of a buffer's bytes is asked for an order with the release of the last one.
//
// One rank is followed, and of a loop the first passes and the last: where values of a buffer meet, they meet on all
// ranks and in all passes (offsets.cpp), and a release takes the whole buffer.
#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "compiler/plan/stream_clock.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// One op run: when on its stream, and which.
struct Moment {
  Stream stream = Stream::Compute;
  int64_t time = 0;
  size_t index = 0;
};

/// The last op runs that touched a resource.
struct Touches {
  Moment writer;
  std::array<Moment, NumStreams> readers;
};

/// The ranges of one arena or buffer: begin to end and touches; ranges do not overlap.
struct Range {
  int64_t end = 0;
  Touches touches;
};
using Ranges = std::map<int64_t, Range>;

/// Splits ranges so that none begins before `at` and ends after it. Returns the first that does not begin before.
auto SplitAt(Ranges& ranges, int64_t at) -> Ranges::iterator {
  const auto next = ranges.lower_bound(at);
  if (next == ranges.begin()) {
    return next;
  }
  const auto own = std::prev(next);
  if (own->second.end <= at) {
    return next;
  }
  const Range tail = own->second;
  own->second.end = at;
  return ranges.emplace_hint(next, at, tail);
}

/// Follows one section. A visitor of WalkSection.
class OrderRun {
 public:
  OrderRun(const Plan& plan, SectionKind section, Findings& findings)
      : plan_(plan),
        section_(section),
        findings_(findings),
        allocated_(plan.Established(PassKind::Allocate)),
        event_clocks_(static_cast<size_t>(plan.num_events)),
        scalars_(static_cast<size_t>(plan.scalars.size())) {}

  auto Enter() -> void {}
  auto Exit() -> void {}
  /// Runs the brackets of a loop on their stream at each pass: they wait and signal like any op.
  auto Begin(size_t index) -> void { Run(index, 0, 1); }
  auto End(size_t index) -> bool { return Run(index, 0, 1); }

  auto Run(size_t index, int64_t repeat, int64_t) -> bool {
    const Op& op = plan_.section(section_).ops[index];
    StreamClock& clock = stream_clocks_[static_cast<size_t>(op.stream)];
    for (const EventId event : op.waits) {
      Join(clock, event_clocks_[static_cast<size_t>(event.index)]);
    }
    own_ = {op.stream, ++clock[static_cast<size_t>(op.stream)], index};
    clock_ = clock;
    reported_ = false;
    if (op.signals.valid()) {
      event_clocks_[static_cast<size_t>(op.signals.index)] = clock;
    }
    // A carry only names.
    if (FactsOf(op).meaning != Meaning::Renamed) {
      const RankPoint point{.coordinates = {}, .repeat = repeat, .step = 0};
      for (const Access& access : findings_.AccessesOf(section_, index)) {
        const Value& value = plan_.values[access.value];
        TouchBytes(value.buffer, RangeOf(value, point), access.kind != AccessKind::Read);
      }
      if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
        TouchBytes(released, {0, plan_.buffers[released].bytes.value}, true);
      }
      for (const ScalarUse& use : ScalarsOf(op)) {
        const Scalar& scalar = plan_.scalars[use.scalar];
        // A schedule is only read; of the others any may be written.
        TouchOne(scalars_[static_cast<size_t>(use.scalar.index)], scalar.kind != ScalarKind::Schedule,
                 [&] { return "scalar " + scalar.name; });
      }
      if (WritesCheckpoint(FactsOf(op).state)) {
        TouchOne(checkpoint_, true, [] { return "the checkpoint"; });
      }
      if (!op.when.always()) {
        TouchOne(scalars_[static_cast<size_t>(op.when.scalar.index)], false,
                 [&] { return "scalar " + plan_.scalars[op.when.scalar].name; });
      }
    }
    return !findings_.full() && findings_.Spend(1);
  }

 private:
  auto Knows(const Moment& moment) const -> bool { return clock_[static_cast<size_t>(moment.stream)] >= moment.time; }

  template <class What>
  auto TouchOne(Touches& touches, bool writes, What&& what) -> void {
    const auto expect = [&](const Moment& other, std::string_view did) {
      if (!reported_ && !Knows(other)) {
        reported_ = true;
        findings_.AddOp(section_, own_.index, "missing-event"_rule,
                        "{} {} that op {} on stream {} {}, and no event orders the two", writes ? "writes" : "reads",
                        what(), other.index, ToText(other.stream), did);
      }
    };
    expect(touches.writer, "wrote");
    if (!writes) {
      touches.readers[static_cast<size_t>(own_.stream)] = own_;
      return;
    }
    for (const Moment& reader : touches.readers) {
      expect(reader, "reads");
    }
    touches.writer = own_;
    touches.readers = {};
  }

  auto TouchBytes(BufferId id, Interval bytes, bool writes) -> void {
    const Buffer& buffer = plan_.buffers[id];
    Ranges* ranges = nullptr;
    if (allocated_) {
      bytes = {bytes.begin + buffer.offset, bytes.end + buffer.offset};
      ranges = &arenas_[static_cast<size_t>(buffer.arena)];
    } else {
      ranges = &buffers_[id];
    }
    const auto what = [&] { return fmt::format("bytes of {}", findings_.Name(id)); };
    const auto end = SplitAt(*ranges, bytes.end);
    auto at = SplitAt(*ranges, bytes.begin);
    auto first = end;
    int64_t reached = bytes.begin;
    while (reached < bytes.end && findings_.Spend(1)) {
      if (at == end || at->first > reached) {
        at = ranges->emplace_hint(at, reached, Range{at == end ? bytes.end : at->first, {}});
      }
      TouchOne(at->second.touches, writes, what);
      first = reached == bytes.begin ? at : first;
      reached = at->second.end;
      ++at;
    }
    if (writes && reached == bytes.end && first != end) {
      // Written as one, touched by one: the pieces are one again.
      first->second.end = bytes.end;
      ranges->erase(std::next(first), end);
    }
  }

  const Plan& plan_;
  SectionKind section_;
  Findings& findings_;
  bool allocated_;
  std::vector<StreamClock> event_clocks_;
  std::array<StreamClock, NumStreams> stream_clocks_{};
  std::array<Ranges, NumArenas> arenas_;
  std::map<BufferId, Ranges> buffers_;
  std::vector<Touches> scalars_;
  /// The files that a save writes.
  Touches checkpoint_;
  Moment own_;
  StreamClock clock_{};
  bool reported_ = false;
};

}  // namespace

auto VerifyOrder(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Synchronize)) {
    return;
  }
  for (size_t s = 0; s < NumSections; ++s) {
    OrderRun run(plan, static_cast<SectionKind>(s), findings);
    WalkSection(plan.sections[s].ops, run);
  }
}

}  // namespace shardc
