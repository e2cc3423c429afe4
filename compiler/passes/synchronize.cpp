// Events: wherever two ops on different streams touch the same bytes and one of them writes, the later waits.
//
// Needs: streams and offsets. Gives: an order of every hazard that follows from events and streams alone, with no event
// that the others imply. Runs after allocate, since memory that is used again is a hazard too.
//   1. walk a section with one vector clock a stream: what each stream is known to follow
//   2. for each op, look up the last writer and the readers since of the bytes that it touches; wait on those that its
//      stream does not follow yet, the latest first, since it may follow the others
//   3. at the end of a loop, walk its body once more, as the next iteration: what an op has to follow of the iteration
//      before, it follows through the loop's ends: the end waits for the op of before, the op for the begin
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>

#include "compiler/passes/pass.h"
#include "compiler/plan/loops.h"
#include "compiler/plan/stream_clock.h"

namespace shardc {

namespace {

constexpr int32_t Never = -1;

constexpr StreamClock NothingOver = [] {
  StreamClock clock{};
  clock.fill(Never);
  return clock;
}();

/// One run of an op; ops in a loop have several.
struct Turn {
  int32_t time = Never;
  int32_t index = 0;
};

/// Ops that touched a range of an arena's bytes last.
struct LastUse {
  Turn writer;
  /// The last reader on each stream since.
  std::array<Turn, NumStreams> readers;
};

/// The last use of each byte range of one arena: a map from the start of each range, ranges back to back.
class ByteMap {
 public:
  /// Some ranges, one after another.
  struct Ranges {
    std::map<int64_t, LastUse>::iterator first;
    std::map<int64_t, LastUse>::iterator end;
  };

  ByteMap() { ranges_[0] = {}; }

  /// Returns the ranges that make up [begin, end). Requires: begin < end.
  auto Of(int64_t begin, int64_t end) -> Ranges {
    const auto first = Split(begin);
    // Few ranges lie in between: a walk is quicker than a search.
    auto last = std::next(first);
    while (last != ranges_.end() && last->first < end) {
      ++last;
    }
    if (last == ranges_.end() || last->first != end) {
      last = ranges_.emplace_hint(last, end, std::prev(last)->second);
    }
    return {.first = first, .end = last};
  }
  /// Makes one range of them.
  auto Merge(const Ranges& ranges, const LastUse& last) -> void {
    ranges.first->second = last;
    ranges_.erase(std::next(ranges.first), ranges.end);
  }

 private:
  /// Returns the range that begins at `at`.
  auto Split(int64_t at) -> std::map<int64_t, LastUse>::iterator {
    const auto next = ranges_.upper_bound(at);
    const auto range = std::prev(next);
    return range->first == at ? range : ranges_.emplace_hint(next, at, range->second);
  }
  std::map<int64_t, LastUse> ranges_;
};

class Synchronizer {
 public:
  Synchronizer(Plan* plan, Section* section) : plan_(*plan), ops_(section->ops), waits_(ops_.size()) {
    now_.clocks.assign(ops_.size(), NothingOver);
    now_.streams.fill(NothingOver);
  }

  auto Run() -> void {
    size_t loop_begin = 0;
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (LoopEdgeOf(ops_[i]) == LoopEdge::Begin) {
        loop_begin = i;
      }
      if (LoopEdgeOf(ops_[i]) == LoopEdge::End) {
        CloseLoop(loop_begin, i);
      } else {
        WaitFor(i, RunOp(i));
      }
    }
    MakeEvents();
  }

 private:
  /// Knowledge of a walk at one moment.
  struct State {
    int32_t time = 0;
    /// The clock of each op, as its last run left it.
    std::vector<StreamClock> clocks;
    std::array<StreamClock, NumStreams> streams;
    std::array<ByteMap, NumArenas> arenas;
  };

  auto StreamOf(size_t index) const -> size_t { return static_cast<size_t>(ops_[index].stream); }
  auto StreamOf(const Turn& turn) const -> size_t { return StreamOf(static_cast<size_t>(turn.index)); }

  /// Runs an op with the waits that it has. Returns the op runs that it still has to wait for, latest first, and
  /// records them as waited for.
  auto RunOp(size_t index) -> std::vector<Turn> {
    const Op& op = ops_[index];
    StreamClock clock = KnownTo(index);
    const Turn turn{.time = now_.time++, .index = static_cast<int32_t>(index)};
    earlier_.clear();
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan_.values[access.value];
      const Buffer& buffer = plan_.buffers[value.buffer];
      // A value whose offset differs by rank or repeat is taken as its whole buffer.
      const bool fixed = value.offset.is_constant();
      Touch(turn, buffer, fixed ? value.offset.base : 0, fixed ? value.bytes() : buffer.bytes,
            access.kind != AccessKind::Read);
    }
    if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
      Touch(turn, plan_.buffers[released], 0, plan_.buffers[released].bytes, true);
    }
    const std::vector<Turn> missing = Follow(clock, earlier_, StreamOf(index));
    clock[StreamOf(index)] = turn.time;
    now_.clocks[index] = clock;
    now_.streams[StreamOf(index)] = clock;
    return missing;
  }

  /// Returns what an op follows by its stream and the waits that it has.
  auto KnownTo(size_t index) const -> StreamClock {
    StreamClock clock = now_.streams[StreamOf(index)];
    for (const size_t signaller : waits_[index]) {
      Join(clock, now_.clocks[signaller]);
    }
    return clock;
  }

  /// Joins to `clock`, of an op on `stream`, the turns that it does not follow yet, the latest first. Returns these.
  template <class Turns>
  auto Follow(StreamClock& clock, Turns& turns, size_t stream) const -> std::vector<Turn> {
    std::sort(turns.begin(), turns.end(), [](const Turn& a, const Turn& b) { return a.time > b.time; });
    std::vector<Turn> missing;
    for (const Turn& turn : turns) {
      if (turn.time != Never && StreamOf(turn) != stream && clock[StreamOf(turn)] < turn.time) {
        missing.push_back(turn);
        Join(clock, now_.clocks[static_cast<size_t>(turn.index)]);
      }
    }
    return missing;
  }

  auto WaitFor(size_t index, const std::vector<Turn>& turns) -> void {
    for (const Turn& turn : turns) {
      waits_[index].push_back(static_cast<size_t>(turn.index));
    }
  }

  /// Adds to `earlier_` a turn that an op on `stream` has to follow, unless the order of the stream does so.
  auto Note(const Turn& turn, size_t stream) -> void {
    if (turn.time != Never && StreamOf(turn) != stream) {
      earlier_.push_back(turn);
    }
  }

  /// Adds to `earlier_` the turns that an op has to follow which touches these bytes of a buffer.
  auto Touch(const Turn& turn, const Buffer& buffer, int64_t offset, Bytes bytes, bool writes) -> void {
    if (bytes.value == 0) {
      return;
    }
    ByteMap& map = now_.arenas[static_cast<size_t>(buffer.arena)];
    const int64_t begin = buffer.offset + offset;
    const int64_t end = begin + bytes.value;
    const ByteMap::Ranges ranges = map.Of(begin, end);
    const size_t stream = StreamOf(turn);
    for (auto range = ranges.first; range != ranges.end; ++range) {
      LastUse& last = range->second;
      Note(last.writer, stream);
      if (!writes) {
        last.readers[stream] = turn;
        continue;
      }
      for (const Turn& reader : last.readers) {
        Note(reader, stream);
      }
    }
    if (writes) {
      map.Merge(ranges, {.writer = turn, .readers = {}});
    }
  }

  /// Closes a loop, whose begin and end run on one stream. First pass: let the loop's end wait for what ops of its own
  /// stream need. Second pass: ops of other streams then only need to wait for the loop's begin.
  auto CloseLoop(size_t begin, size_t end) -> void {
    const State at_end = now_;
    for (const bool only_own : {true, false}) {
      now_ = at_end;
      const int32_t next_iteration = now_.time;
      RunOp(end);
      std::array<Turn, NumStreams> last;
      for (size_t i = begin; i < end; ++i) {
        for (const Turn& turn : RunOp(i)) {
          if (only_own && StreamOf(i) != StreamOf(begin)) {
            continue;
          }
          CHECK(turn.time < next_iteration, "op {} does not follow op {} of its own iteration", i, turn.index);
          if (Turn& latest = last[StreamOf(turn)]; turn.time > latest.time) {
            latest = turn;
          }
          if (StreamOf(i) != StreamOf(begin)) {
            WaitForBegin(i, begin);
          }
        }
      }
      now_ = at_end;
      StreamClock clock = KnownTo(end);
      WaitFor(end, Follow(clock, last, StreamOf(end)));
    }
    // The last iteration is one that had another before.
    RunOp(end);
    for (size_t i = begin; i <= end; ++i) {
      CHECK(RunOp(i).empty(), "op {} follows too little of the iteration before", i);
    }
  }

  /// Lets an op wait for the begin, which follows all of its stream that came before: nothing else is to be waited for
  /// there.
  auto WaitForBegin(size_t index, size_t begin) -> void {
    std::erase_if(waits_[index],
                  [&](size_t signaller) { return signaller <= begin && StreamOf(signaller) == StreamOf(begin); });
    waits_[index].push_back(begin);
  }

  auto MakeEvents() -> void {
    std::vector<bool> signals(ops_.size());
    for (const std::vector<size_t>& signallers : waits_) {
      for (const size_t signaller : signallers) {
        signals[signaller] = true;
      }
    }
    for (size_t i = 0; i < ops_.size(); ++i) {
      if (signals[i]) {
        ops_[i].signals = EventId{plan_.num_events++};
      }
      for (const size_t signaller : waits_[i]) {
        ops_[i].waits.push_back(ops_[signaller].signals);
      }
    }
  }

  Plan& plan_;
  std::vector<Op>& ops_;
  /// The ops that each op waits for.
  std::vector<std::vector<size_t>> waits_;
  State now_;
  /// Ops of other streams that the op at hand has to follow, in any order and with repetitions.
  std::vector<Turn> earlier_;
};

}  // namespace

auto Synchronize(Plan plan, PassContext&) -> ErrorOr<Plan> {
  for (Section& section : plan.sections) {
    const auto has_other_stream = [&](const Op& op) { return op.stream != section.ops.front().stream; };
    if (std::ranges::any_of(section.ops, has_other_stream)) {
      Synchronizer(&plan, &section).Run();
    }
  }
  return plan;
}

}  // namespace shardc
