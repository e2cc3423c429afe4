// Where gathers begin and buffers end, where scratch comes from, and which stream each op runs on.
//
// Needs: all sections. Gives: a release after the last use of every buffer that does not outlive its section.
//   1. move each gather ahead of its use by the prefetch depth, counted in gathered units
//   2. give each op that needs scratch a buffer of its own
//   3. put collectives of slices on the stream of their axis, host work on the host's; where streams run side by side,
//      sums of gradients on a stream of their own
//   4. release each transient buffer after the last op that uses it, and on its stream where streams run side by side;
//      after the loop, if it was written before it; of a ring, only when the buffer that takes its turn begins, and on
//      compute; so is the scratch of collectives beside compute
#include <algorithm>
#include <iterator>
#include <limits>
#include <map>

#include "compiler/base/devices.h"
#include "compiler/ops/emitter.h"
#include "compiler/ops/unit_collectives.h"
#include "compiler/passes/pass.h"
#include "compiler/plan/loops.h"

namespace shardc {

namespace {

/// The gathers of one unit, next to each other in a section.
struct GatherGroup {
  size_t begin = 0;
  size_t end = 0;
  bool in_backward = false;
  /// The last op that writes what they gather: they are not moved in front of it.
  size_t ready = 0;
};

}  // namespace

/// Returns the groups of gathers, those together that may be reordered among each other: in one half of the step and in
/// one loop body.
static auto GroupsOfGathers(const Plan& plan, const std::vector<Op>& ops) -> std::vector<std::vector<GatherGroup>> {
  std::vector<std::vector<GatherGroup>> runs(1);
  std::map<BufferId, size_t> kept;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (const auto copy = CopyOf(ops[i])) {
      kept[plan.values[copy->to].buffer] = i;
    }
    if (LoopEdgeOf(ops[i]) != LoopEdge::None) {
      runs.emplace_back();
    }
    const auto gather = ParameterGatherOf(plan, ops[i]);
    if (!gather) {
      continue;
    }
    const bool in_backward = IsBackward(ops[i]);
    const auto source = kept.find(plan.values[gather->from].buffer);
    const size_t ready = source == kept.end() ? 0 : source->second;
    std::vector<GatherGroup>& run = runs.back();
    if (!run.empty() && run.back().end == i) {
      run.back().end = i + 1;
      run.back().ready = std::max(run.back().ready, ready);
    } else if (!run.empty() && run.back().in_backward != in_backward) {
      runs.push_back({{i, i + 1, in_backward, ready}});
    } else {
      run.push_back({i, i + 1, in_backward, ready});
    }
  }
  return runs;
}

/// Moves each gather to after the one that is `depth` units before it in the same half of the step and the same loop
/// body, or after the first of these: while a unit is in use, the next `depth` are on their way. A gather stays after
/// the copy that keeps what it gathers.
static auto Prefetch(const Plan& plan, Section& section, int64_t forward_depth, int64_t backward_depth) -> void {
  if (forward_depth == 0 && backward_depth == 0) {
    return;
  }
  std::vector<Op> ops = std::move(section.ops);
  const std::vector<std::vector<GatherGroup>> runs = GroupsOfGathers(plan, ops);
  std::vector<bool> moved(ops.size(), false);
  std::map<size_t, std::vector<GatherGroup>> after;
  for (const std::vector<GatherGroup>& run : runs) {
    for (size_t g = 1; g < run.size(); ++g) {
      const auto depth = static_cast<size_t>(run[g].in_backward ? backward_depth : forward_depth);
      if (depth > 0) {
        after[std::max(run[g < depth ? 0 : g - depth].end - 1, run[g].ready)].push_back(run[g]);
        std::fill(moved.begin() + static_cast<std::ptrdiff_t>(run[g].begin),
                  moved.begin() + static_cast<std::ptrdiff_t>(run[g].end), true);
      }
    }
  }
  section.ops.clear();
  section.ops.reserve(ops.size());
  auto next = after.begin();
  for (size_t i = 0; i < ops.size(); ++i) {
    if (!moved[i]) {
      section.ops.push_back(std::move(ops[i]));
    }
    if (next == after.end() || next->first != i) {
      continue;
    }
    for (const GatherGroup& group : next->second) {
      std::move(ops.begin() + static_cast<std::ptrdiff_t>(group.begin),
                ops.begin() + static_cast<std::ptrdiff_t>(group.end), std::back_inserter(section.ops));
    }
    ++next;
  }
}

/// Returns the name of the first value that an op writes.
static auto ResultName(const Op& op, const Plan& plan) -> std::string {
  for (const Access& access : AccessesOf(op.body)) {
    if (access.kind != AccessKind::Read) {
      return plan.values[access.value].name;
    }
  }
  return std::string(ToText(op.kind()));
}

static auto AddScratch(Plan& plan, Section& section) -> void {
  std::vector<Op> none;
  Emitter emitter(&plan, &none, PassKind::Schedule);
  for (Op& op : section.ops) {
    VisitBody(op.body, [&](auto& body) {
      using Body = std::remove_cvref_t<decltype(body)>;
      if constexpr (HasScratch<Body>) {
        const Bytes bytes = ScratchBytes(body, plan);
        if (bytes == Bytes{}) {
          return;
        }
        const int64_t elements = CeilDiv(bytes.value, SizeOf(DType::F32));
        body.scratch = emitter.New({DType::F32, {elements}}, Category::Workspace, ResultName(op, plan) + ".scratch");
        if (FactsOf(op).peers_read_scratch) {
          plan.buffers[plan.values[body.scratch].buffer].arena = Arena::SharedTransient;
        }
      }
    });
  }
}

static auto StreamOf(const OpBody& body, const Plan& plan) -> Stream {
  switch (FactsOf(body).stream) {
    case StreamClass::Compute: return Stream::Compute;
    case StreamClass::Host: return Stream::Host;
    case StreamClass::Axes:
      // What is small, and so not read by peers, is wanted at once.
      if (!PeersRead(body, plan)) {
        return Stream::Compute;
      }
      const Stream stream = StreamOf(*AttributeOf<AxisSet>(body, "axes"));
      const bool is_sum = FactsOf(body).collective != CollectiveKind::AllGather;
      // Gathers of the next units need not wait for the sums of gradients.
      return is_sum && stream == Stream::Dp && FactsOf(plan.device).overlaps_streams ? Stream::Reduce : stream;
  }
  return Stream::Compute;
}

/// Puts each op on its stream. The ends of a loop run on the stream of its ops if that is one stream: nothing has to
/// meet there then.
static auto PickStreams(const Plan& plan, Section& section) -> void {
  size_t loop_begin = 0;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    section.ops[i].stream = StreamOf(section.ops[i].body, plan);
    if (LoopEdgeOf(section.ops[i]) == LoopEdge::Begin) {
      loop_begin = i;
    } else if (LoopEdgeOf(section.ops[i]) == LoopEdge::End && i > loop_begin + 1) {
      const Stream stream = section.ops[loop_begin + 1].stream;
      if (std::all_of(&section.ops[loop_begin + 1], &section.ops[i],
                      [&](const Op& op) { return op.stream == stream; })) {
        section.ops[loop_begin].stream = stream;
        section.ops[i].stream = stream;
      }
    }
  }
}

namespace {

/// The ops at which a buffer is touched first and last.
struct BufferLife {
  static constexpr size_t Never = std::numeric_limits<size_t>::max();

  size_t first = Never;
  size_t last = 0;
};

}  // namespace

/// Lets buffers of a kind and of one size take turns, in each range of ops that no loop edge cuts: each lasts until the
/// buffer begins that comes after it by the ring's depth. A depth of 0: no ring.
static auto HoldInRings(const Plan& plan, const Section& section, const ShardSection& shard,
                        std::vector<BufferLife>& uses) -> void {
  const auto at = [&](BufferId id) -> BufferLife& { return uses[static_cast<size_t>(id.index)]; };
  std::vector<size_t> range_of(section.ops.size());
  std::vector<BufferId> gathered;
  std::vector<BufferId> reduced;
  size_t range = 0;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.ops[i];
    range += LoopEdgeOf(op) != LoopEdge::None ? 1 : 0;
    range_of[i] = range;
    if (const auto gather = ParameterGatherOf(plan, op)) {
      gathered.push_back(plan.values[gather->to].buffer);
    } else if (const auto scatter = GradientScatterOf(plan, op)) {
      reduced.push_back(plan.values[scatter->from].buffer);
    }
  }
  const auto hold = [&](std::vector<BufferId> buffers, int64_t depth) {
    if (depth == 0) {
      return;
    }
    std::stable_sort(buffers.begin(), buffers.end(), [&](BufferId a, BufferId b) { return at(a).first < at(b).first; });
    std::map<std::pair<size_t, Bytes>, std::vector<BufferId>> turns;
    for (const BufferId buffer : buffers) {
      turns[{range_of[at(buffer).first], plan.buffers[buffer].bytes}].push_back(buffer);
    }
    for (const auto& [of, ring] : turns) {
      for (size_t i = 0; i + static_cast<size_t>(depth) < ring.size(); ++i) {
        const size_t next = at(ring[i + static_cast<size_t>(depth)]).first;
        at(ring[i]).last = std::max(at(ring[i]).last, next - 1);
      }
    }
  };
  hold(gathered, *shard.gather_ring);
  hold(reduced, *shard.reduce_ring);
}

/// Holds the scratch of each collective beside compute until the next but one begins on its stream: at once, its memory
/// would go to an op of compute, which would wait for the collective.
static auto HoldScratch(const Plan& plan, const Section& section, std::vector<BufferLife>& uses) -> void {
  constexpr size_t Turns = 2;
  std::array<std::vector<BufferId>, NumStreams> in_turn;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.ops[i];
    if (LoopEdgeOf(op) != LoopEdge::None) {
      in_turn = {};
    }
    const ValueId scratch = ValueIn(op.body, "scratch");
    if (FactsOf(op).collective == CollectiveKind::None || op.stream == Stream::Compute || !scratch.valid()) {
      continue;
    }
    std::vector<BufferId>& buffers = in_turn[static_cast<size_t>(op.stream)];
    if (buffers.size() >= Turns) {
      BufferLife& life = uses[static_cast<size_t>(buffers[buffers.size() - Turns].index)];
      life.last = std::max(life.last, i - 1);
    }
    buffers.push_back(plan.values[scratch].buffer);
  }
}

/// Returns the first and the last op that touch each transient buffer, and appends the buffers to `order` as they
/// begin. A buffer from before a loop is last touched at the loop's end.
static auto LivesOf(const Plan& plan, const Section& section, std::vector<BufferId>& order) -> std::vector<BufferLife> {
  std::vector<BufferLife> uses(static_cast<size_t>(plan.buffers.size()));
  const auto at = [&](BufferId id) -> BufferLife& { return uses[static_cast<size_t>(id.index)]; };
  size_t loop_begin = 0;
  bool in_loop = false;
  std::vector<BufferId> held_by_loop;
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const Op& op = section.ops[i];
    if (LoopEdgeOf(op) == LoopEdge::Begin) {
      in_loop = true;
      loop_begin = i;
    }
    for (const Access& access : AccessesOf(op.body)) {
      const BufferId buffer = plan.values[access.value].buffer;
      if (IsPersistent(plan.buffers[buffer].arena)) {
        continue;
      }
      BufferLife& use = at(buffer);
      if (use.first == BufferLife::Never) {
        use.first = i;
        order.push_back(buffer);
      }
      use.last = i;
      if (in_loop && use.first < loop_begin) {
        held_by_loop.push_back(buffer);
      }
    }
    if (LoopEdgeOf(op) == LoopEdge::End) {
      in_loop = false;
      for (const BufferId buffer : held_by_loop) {
        at(buffer).last = i;
      }
      held_by_loop.clear();
    }
  }
  return uses;
}

static auto AddReleases(Plan& plan, Section& section, const ShardSection& shard) -> void {
  std::vector<BufferId> order;
  const std::vector<BufferLife> touched = LivesOf(plan, section, order);
  std::vector<BufferLife> uses = touched;
  const bool overlaps = FactsOf(plan.device).overlaps_streams;
  HoldInRings(plan, section, shard, uses);
  if (overlaps) {
    HoldScratch(plan, section, uses);
  }

  const auto at = [&](BufferId id) -> const BufferLife& { return uses[static_cast<size_t>(id.index)]; };
  // Buffers by where they end, in the order in which they began.
  std::stable_sort(order.begin(), order.end(), [&](BufferId a, BufferId b) { return at(a).last < at(b).last; });
  std::vector<Op> ops;
  ops.reserve(section.ops.size() + order.size());
  auto next = order.begin();
  for (size_t i = 0; i < section.ops.size(); ++i) {
    const int32_t layer = section.ops[i].layer;
    const Phase phase = section.ops[i].phase;
    const Stream stream = section.ops[i].stream;
    ops.push_back(std::move(section.ops[i]));
    Emitter emitter(&plan, &ops, PassKind::Schedule);
    emitter.set_layer(layer);
    emitter.set_phase(phase);
    for (; next != order.end() && at(*next).last == i; ++next) {
      // If streams run side by side, compute does not stop for the last use of another stream, but for that of a
      // buffer whose turn is over: its memory is wanted now.
      const bool is_last_use = touched[static_cast<size_t>(next->index)].last == i;
      emitter.Emit(op::Release{.buffer = *next}).stream = overlaps && is_last_use ? stream : Stream::Compute;
    }
  }
  section.ops = std::move(ops);
}

auto Schedule(Plan plan, PassContext& context) -> ErrorOr<Plan> {
  const ShardSection& shard = context.recipe->shard;
  for (Section& section : plan.sections) {
    Prefetch(plan, section, *shard.prefetch_forward, *shard.prefetch_backward);
    AddScratch(plan, section);
    PickStreams(plan, section);
    AddReleases(plan, section, shard);
  }
  return plan;
}

}  // namespace shardc
