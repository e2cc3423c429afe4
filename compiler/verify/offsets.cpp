// Offsets: whether two values of a buffer share bytes is the same on all ranks and in all iterations of a loop,
// wherever one of the two is written. Then what lives.cpp and order.cpp find on one rank, and in the
// iterations that they follow, holds on all ranks and in all iterations.
//
// A value lies at base + factor * coordinate of the rank + factor * index of the iteration. Two values relate alike
// everywhere in three cases: the difference of their offsets is a constant, and a value that moves with the iteration
// stays inside a slot of its own, which no other iteration touches; or the bytes of one, at all its offsets, do not
// meet those of the other; or one does not move and covers the other at all its offsets.
#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "compiler/verify/internal.h"

namespace shardc {

namespace {

class OffsetVerifier {
 public:
  OffsetVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), uses_(static_cast<size_t>(plan.values.size())) {}

  auto Run() -> void {
    CollectUses();
    std::unordered_map<BufferId, std::vector<ValueId>> moving;
    for (const ValueId id : plan_.values.ids()) {
      if (UseOf(id).count > 0 && Moves(id)) {
        moving[plan_.values[id].buffer].push_back(id);
      }
    }
    if (moving.empty()) {
      return;
    }
    for (const ValueId id : plan_.values.ids()) {
      const auto others = moving.find(plan_.values[id].buffer);
      if (UseOf(id).count == 0 || others == moving.end() || !findings_.Spend(others->second.size())) {
        continue;
      }
      for (const ValueId other : others->second) {
        // Of two that move, the pair is met twice.
        const bool is_second = Moves(id) && id.index <= other.index;
        if (id != other && !is_second && (UseOf(id).is_written || UseOf(other).is_written)) {
          Compare(id, other);
        }
      }
    }
  }

 private:
  struct Use {
    /// Iterations of the longest loop that touches the value; 0 if nothing does.
    int64_t count = 0;
    bool is_written = false;
  };

  auto UseOf(ValueId id) -> Use& { return uses_[static_cast<size_t>(id.index)]; }
  auto CollectUses() -> void {
    LoopTracker loops;
    ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
      loops.Enter(op);
      for (const Access& access : findings_.AccessesOf(section, index)) {
        Use& use = UseOf(access.value);
        use.count = std::max(use.count, loops.count());
        use.is_written = use.is_written || access.kind != AccessKind::Read;
        if (access.kills.valid()) {
          UseOf(access.kills).count = std::max(UseOf(access.kills).count, loops.count());
        }
      }
    });
  }
  auto Moves(ValueId id) -> bool {
    const RankExpr& offset = plan_.values[id].offset;
    bool moves = offset.repeat != 0 && UseOf(id).count > 1;
    for (size_t i = 0; i < NumAxes; ++i) {
      moves = moves || (offset.axis[i] != 0 && plan_.mesh.size(static_cast<Axis>(i)) > 1);
    }
    return moves;
  }
  /// Returns the range from the first byte at the lowest offset to the last byte at the highest.
  auto Reach(ValueId id) -> Interval {
    const Value& value = plan_.values[id];
    const auto bounds = BoundsOf(value.offset, plan_.mesh, UseOf(id).count, 0);
    CHECK(bounds.has_value(), "value {} lies at {}", value.name, ToText(value.offset));
    return {bounds->first, bounds->second + value.bytes().value};
  }

  auto Compare(ValueId id, ValueId other) -> void {
    const RankExpr& a = plan_.values[id].offset;
    const RankExpr& b = plan_.values[other].offset;
    const int64_t begin = std::min(a.base, b.base);
    const int64_t end = std::max(a.base + plan_.values[id].bytes().value, b.base + plan_.values[other].bytes().value);
    const bool stays_in_slot = a.repeat == 0 || end - begin <= std::abs(a.repeat);
    const bool move_alike = a.axis == b.axis && a.repeat == b.repeat && !a.clamp && !b.clamp && stays_in_slot;
    const Interval reach = Reach(id);
    const Interval meets = Intersect(reach, Reach(other));
    const bool covers = !Moves(id) && meets == Reach(other);
    if (!move_alike && a != b && !meets.empty() && !covers) {
      const BufferId buffer = plan_.values[id].buffer;
      findings_.Add("offset-differs"_rule,
                    "values {} at {} and {} at {} of {} share bytes on some ranks, or in some iterations "
                    "of a loop, and not on others",
                    findings_.Name(id), ToText(a), findings_.Name(other), ToText(b), findings_.Name(buffer));
    }
  }

  const Plan& plan_;
  Findings& findings_;
  std::vector<Use> uses_;
};

}  // namespace

auto VerifyOffsets(const Plan& plan, Findings& findings) -> void { OffsetVerifier(plan, findings).Run(); }

}  // namespace shardc
