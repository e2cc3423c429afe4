// Events: wherever two ops on different streams touch the same bytes and one of them writes, the later waits.
//
// Needs: streams and offsets. Gives: an order of every hazard that follows from events and streams alone. Runs behind
// allocate, since memory that is used again is a hazard too.
//   1. walk a section with one vector clock a stream: what each stream is known to follow
//   2. for each op, look up the last writer and the readers since of the bytes it touches; wait on those that its
//      stream does not follow yet, the latest first, since it may follow the others
//   3. the ends of a loop join all streams, so that one iteration is as good as the next
#include <algorithm>
#include <functional>
#include <map>

#include "compiler/passes/pass.h"

namespace shardc {

namespace {

constexpr int64_t Never = -1;

/// Number of the last op of each stream that is known to be over.
using Clock = std::array<int64_t, NumStreams>;

/// Who touched a stretch of an arena last.
struct Touches {
  int64_t writer = Never;
  /// The last reader on each stream since.
  Clock readers{Never, Never, Never, Never, Never};
};

/// Touches by byte range of one arena: a map from the start of each range to its touches, ranges back to back.
class ByteMap {
 public:
  ByteMap() { ranges_[0] = {}; }

  /// Calls `function(Touches&)` for the ranges that make up [begin, end).
  template <class Function>
  auto ForEach(int64_t begin, int64_t end, Function&& function) -> void {
    Split(begin);
    Split(end);
    for (auto range = ranges_.find(begin); range != ranges_.end() && range->first < end; ++range) {
      function(range->second);
    }
  }
  /// Makes [begin, end) one range.
  auto Assign(int64_t begin, int64_t end, const Touches& touches) -> void {
    Split(begin);
    Split(end);
    ranges_.erase(ranges_.find(begin), ranges_.find(end));
    ranges_[begin] = touches;
  }

 private:
  auto Split(int64_t at) -> void {
    const auto range = std::prev(ranges_.upper_bound(at));
    if (range->first != at) {
      ranges_.emplace(at, range->second);
    }
  }
  std::map<int64_t, Touches> ranges_;
};

class Synchronizer {
 public:
  Synchronizer(Plan* plan, Section* section) : plan_(*plan), ops_(section->ops) {}

  auto Run() -> void {
    const bool one_stream =
        std::all_of(ops_.begin(), ops_.end(), [&](const Op& op) { return op.stream == ops_[0].stream; });
    if (one_stream) {
      return;
    }
    clocks_.assign(ops_.size(), {Never, Never, Never, Never, Never});
    for (size_t i = 0; i < ops_.size(); ++i) {
      Order(static_cast<int64_t>(i));
    }
  }

 private:
  auto Order(int64_t i) -> void {
    Op& op = ops_[static_cast<size_t>(i)];
    const auto stream = static_cast<size_t>(op.stream);
    now_ = of_stream_[stream];
    earlier_ = {last_join_};
    for (const Access& access : AccessesOf(op.body)) {
      const Value& value = plan_.values[access.value];
      Touch(op.stream, i, value.buffer, value, access.kind != AccessKind::Read);
    }
    if (const auto* release = op.As<op::Release>()) {
      TouchBytes(op.stream, i, plan_.buffers[release->buffer], 0, plan_.buffers[release->buffer].bytes.value, true);
    }
    if (op.As<op::Repeat>() || op.As<op::EndRepeat>()) {
      earlier_.insert(earlier_.end(), last_of_stream_.begin(), last_of_stream_.end());
      last_join_ = i;
    }
    std::sort(earlier_.begin(), earlier_.end(), std::greater<>());
    for (const int64_t earlier : earlier_) {
      Wait(op, earlier);
    }
    now_[stream] = i;
    clocks_[static_cast<size_t>(i)] = now_;
    of_stream_[stream] = now_;
    last_of_stream_[stream] = i;
  }

  /// A value whose place differs by rank or repeat is taken as its whole buffer.
  auto Touch(Stream stream, int64_t i, BufferId id, const Value& value, bool writes) -> void {
    const Buffer& buffer = plan_.buffers[id];
    const bool fixed = value.offset.is_constant();
    TouchBytes(stream, i, buffer, fixed ? value.offset.base : 0, fixed ? value.bytes().value : buffer.bytes.value,
               writes);
  }

  auto TouchBytes(Stream stream, int64_t i, const Buffer& buffer, int64_t offset, int64_t bytes, bool writes) -> void {
    if (bytes == 0) {
      return;
    }
    ByteMap& map = arenas_[static_cast<size_t>(buffer.arena)];
    const int64_t begin = buffer.offset + offset;
    map.ForEach(begin, begin + bytes, [&](Touches& touches) {
      earlier_.push_back(touches.writer);
      if (writes) {
        earlier_.insert(earlier_.end(), touches.readers.begin(), touches.readers.end());
      } else {
        touches.readers[static_cast<size_t>(stream)] = i;
      }
    });
    if (writes) {
      Touches touches;
      touches.writer = i;
      map.Assign(begin, begin + bytes, touches);
    }
  }

  auto Wait(Op& op, int64_t earlier) -> void {
    if (earlier == Never) {
      return;
    }
    Op& signaller = ops_[static_cast<size_t>(earlier)];
    if (signaller.stream == op.stream || now_[static_cast<size_t>(signaller.stream)] >= earlier) {
      return;
    }
    if (!signaller.signals.valid()) {
      signaller.signals = EventId{plan_.num_events++};
    }
    op.waits.push_back(signaller.signals);
    const Clock& followed = clocks_[static_cast<size_t>(earlier)];
    for (size_t s = 0; s < NumStreams; ++s) {
      now_[s] = std::max(now_[s], followed[s]);
    }
  }

  Plan& plan_;
  std::vector<Op>& ops_;
  std::vector<Clock> clocks_;
  Clock now_{Never, Never, Never, Never, Never};
  std::array<Clock, NumStreams> of_stream_ = [] {
    std::array<Clock, NumStreams> clocks;
    clocks.fill({Never, Never, Never, Never, Never});
    return clocks;
  }();
  /// What the op at hand has to follow, in any order and with repetitions.
  std::vector<int64_t> earlier_;
  Clock last_of_stream_{Never, Never, Never, Never, Never};
  int64_t last_join_ = Never;
  std::array<ByteMap, NumArenas> arenas_;
};

}  // namespace

auto Synchronize(Plan plan, PassContext&) -> ErrorOr<Plan> {
  for (Section& section : plan.sections) {
    Synchronizer(&plan, &section).Run();
  }
  return plan;
}

}  // namespace shardc
