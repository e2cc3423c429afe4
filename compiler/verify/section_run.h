// One section as it runs on one rank: which bytes hold something at each op, and which buffers live.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "compiler/plan/red_zone.h"
#include "compiler/verify/defined_bytes.h"
#include "compiler/verify/internal.h"

namespace shardc {

/// A range of a buffer's bytes that holds something. One section leaves these to the next, ordered by buffer and
/// offset, apart from each other.
struct HeldBytes {
  BufferId buffer;
  Interval bytes;
};
using HeldState = std::vector<HeldBytes>;

/// A state for each id, as it begins until it is asked for. Serves run after run, as most sections touch little.
template <class IdType, class State>
class StateTable {
 public:
  explicit StateTable(int32_t size) : entries_(static_cast<size_t>(size)) {}

  auto operator[](IdType id) -> State& {
    Entry& entry = entries_[static_cast<size_t>(id.index)];
    if (!entry.touched) {
      entry.touched = true;
      touched_.push_back(id);
    }
    return entry.state;
  }
  /// Returns each id that was asked for, once.
  auto Touched() const -> const std::vector<IdType>& { return touched_; }
  auto Clear() -> void {
    for (const IdType id : touched_) {
      Entry& entry = entries_[static_cast<size_t>(id.index)];
      entry.state.Reset();
      entry.touched = false;
    }
    touched_.clear();
  }

 private:
  struct Entry {
    State state;
    bool touched = false;
  };
  std::vector<Entry> entries_;
  std::vector<IdType> touched_;
};

/// Facts of a buffer, and below of a value, at the point that a run has reached.
struct BufferState {
  DefinedBytes defined;
  /// When this life began; 0 for what the section found.
  int64_t born = 0;
  bool alive = false;

  auto Reset() -> void {
    defined.Clear();
    born = 0;
    alive = false;
  }
};
struct ValueState {
  /// When it was last read or written under this name; when written. -1: never.
  int64_t used = -1;
  int64_t written = -1;
  /// When the bytes got the value that in-place ops made it of. 0: not known.
  int64_t fresh = 0;

  auto Reset() -> void { *this = {}; }
};
struct RunStates {
  explicit RunStates(const Plan& plan) : buffers(plan.buffers.size()), values(plan.values.size()) {}

  StateTable<BufferId, BufferState> buffers;
  StateTable<ValueId, ValueState> values;
};

struct BufferUse {
  /// Sections in which an op other than in place writes the buffer, and in which one releases it.
  SectionSet written_in;
  SectionSet released_in;
  /// Does an op read the buffer under a name that no op writes?
  bool is_viewed = false;
};
struct ValueUse {
  /// Does an op read or write the value?
  bool is_named = false;
  /// The sections in which the value is the result of an op.
  SectionSet result_in;
  /// True if a loop ends by giving its bytes this name: the first pass reads what an op before the loop wrote.
  bool is_carried = false;
};

/// Facts of the whole plan that every section's run needs.
struct PlanUses {
  std::vector<BufferUse> buffers;
  std::vector<ValueUse> values;
  /// The unit of each parameter; unset before there are units.
  std::vector<UnitId> unit_of_parameter;

  auto Of(BufferId id) -> BufferUse& { return buffers[static_cast<size_t>(id.index)]; }
  auto Of(BufferId id) const -> const BufferUse& { return buffers[static_cast<size_t>(id.index)]; }
  auto Of(ValueId id) -> ValueUse& { return values[static_cast<size_t>(id.index)]; }
  auto Of(ValueId id) const -> const ValueUse& { return values[static_cast<size_t>(id.index)]; }
};

/// Follows one section on one rank. A visitor of WalkSection.
class SectionRun {
 public:
  SectionRun(const Plan& plan, const PlanUses& uses, SectionKind section, const Coordinates& coordinates,
             RunStates& states, Findings& findings)
      : plan_(plan),
        uses_(uses),
        states_(states),
        section_(section),
        point_{.coordinates = coordinates, .repeat = 0, .step = 0},
        findings_(findings),
        strict_(plan.Established(PassKind::Schedule)),
        allocated_(plan.Established(PassKind::Allocate)),
        apart_(BytesBetweenBuffers(plan)) {
    states_.buffers.Clear();
    states_.values.Clear();
  }

  auto Start(const HeldState& state) -> void;
  auto Run(size_t index, int64_t repeat, int64_t count) -> bool;
  auto Enter() -> void { journals_.emplace_back(); }
  auto Begin(size_t index) -> void { begins_.push_back(index); }
  auto End(size_t) -> bool;
  auto Exit() -> void { journals_.pop_back(); }
  /// Asks after the last op that every buffer that should be released is released.
  auto Finish() -> void;
  /// Returns the bytes that the section leaves to others.
  auto Held() -> HeldState;

 private:
  using Journal = std::unordered_map<BufferId, std::vector<Interval>>;

  template <class... Args>
  auto Report(PlanRule rule, fmt::format_string<Args...> format, Args&&... args) -> void {
    findings_.AddOp(section_, index_, rule, format, std::forward<Args>(args)...);
  }
  auto Name(ValueId id) const -> std::string { return findings_.Name(id); }
  auto At(BufferId id) -> BufferState& { return states_.buffers[id]; }
  auto At(ValueId id) -> ValueState& { return states_.values[id]; }
  auto Range(ValueId id) const -> Interval { return RangeOf(plan_.values[id], point_); }

  auto Touch(BufferId id) -> void;
  /// Returns the buffers that the section touched and for which `wanted(id)` holds, in the order of ids.
  template <class Wanted>
  auto TouchedBuffers(Wanted&& wanted) const -> std::vector<BufferId>;
  auto Read(ValueId id, const Op& op) -> void;
  auto FirstMissing(ValueId id, const Interval& range, const Interval& gap, const Op& op) -> std::optional<Interval>;
  auto CheckName(ValueId id, const Interval& range) -> void;
  auto Write(const Access& access, int64_t count) -> void;
  auto WriteScratch(ValueId id) -> void;
  auto CheckOverlaps(std::span<const Access> accesses) -> void;
  auto Release(BufferId id) -> void;
  auto ComeAlive(BufferId id) -> void;
  auto Die(BufferId id) -> void;

  const Plan& plan_;
  const PlanUses& uses_;
  RunStates& states_;
  SectionKind section_;
  RankPoint point_;
  Findings& findings_;
  /// Releases are there: lives have ends.
  bool strict_;
  bool allocated_;
  /// Bytes between buffers that are alive together.
  int64_t apart_;
  /// Per open loop: what each touched buffer held when its body began.
  std::vector<Journal> journals_;
  /// The value that was last written in buffers that are read as views: by buffer and first byte.
  std::map<std::pair<BufferId, int64_t>, ValueId> last_written_;
  std::vector<size_t> begins_;
  /// Living buffers of the arenas that end with the section, by offset.
  std::array<std::map<int64_t, BufferId>, NumArenas> alive_;
  size_t index_ = 0;
  int64_t now_ = 0;
};

}  // namespace shardc
