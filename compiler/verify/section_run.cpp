// Within a section, per buffer, bytes hold something or nothing. Many values are views of one buffer, so bytes decide,
// and for the result of an op its name too: the op has to come first. A value that an in-place op overwrote is dead:
// its name, and every other name of those bytes that was in use before. At its end, a loop's body leaves what it found,
// host data apart. After `allocate`, the living buffers of each arena are kept by offset, and a new one is compared
// with its neighbours.
#include "compiler/verify/section_run.h"

#include <iterator>

#include "compiler/plan/local_parameter.h"

namespace shardc {

auto SectionRun::Start(const HeldState& state) -> void {
  for (const HeldBytes& held : state) {
    At(held.buffer).defined.Write({.bytes = held.bytes, .killed_at = 0, .killed = {}, .killed_by = 0});
    At(held.buffer).alive = true;
  }
  if (plan_.Established(PassKind::Lifecycle)) {
    return;
  }
  // Until lifecycle, nothing says where the state comes from: what is only read or updated is taken as given.
  for (const BufferId id : plan_.buffers.ids()) {
    const SectionSet written_in = uses_.Of(id).written_in;
    const bool is_given = IsPersistent(plan_.buffers[id].arena) ? !written_in.Has(section_) : written_in.empty();
    if (is_given) {
      At(id).defined.Write({.bytes = {0, plan_.buffers[id].bytes.value}, .killed_at = 0, .killed = {}, .killed_by = 0});
      At(id).alive = true;
    }
  }
}

auto SectionRun::Touch(BufferId id) -> void {
  for (Journal& journal : journals_) {
    if (!journal.contains(id)) {
      findings_.Spend(At(id).defined.ranges().size());
      journal.emplace(id, At(id).defined.HeldRanges());
    }
  }
}

auto SectionRun::ComeAlive(BufferId id) -> void {
  BufferState& state = At(id);
  if (state.alive) {
    return;
  }
  state.alive = true;
  state.born = now_ + 1;
  const Buffer& buffer = plan_.buffers[id];
  if (!allocated_ || IsPersistent(buffer.arena)) {
    return;
  }
  auto& alive = alive_[static_cast<size_t>(buffer.arena)];
  const auto report = [&](BufferId other) {
    const Buffer& held = plan_.buffers[other];
    Report("buffer-overlap"_rule, "{} takes bytes {} to {} of the {} arena; {} lives at {} to {}{}", findings_.Name(id),
           buffer.offset, buffer.offset + buffer.bytes.value, ToText(buffer.arena), findings_.Name(other), held.offset,
           held.offset + held.bytes.value, apart_ > 0 ? ", red zones not counted" : "");
  };
  const auto after = alive.lower_bound(buffer.offset);
  if (after != alive.end() && after->first < buffer.offset + buffer.bytes.value + apart_) {
    report(after->second);
    return;
  }
  if (after != alive.begin()) {
    const BufferId before = std::prev(after)->second;
    if (plan_.buffers[before].offset + plan_.buffers[before].bytes.value + apart_ > buffer.offset) {
      report(before);
      return;
    }
  }
  alive.emplace(buffer.offset, id);
}

auto SectionRun::Die(BufferId id) -> void {
  BufferState& state = At(id);
  state.alive = false;
  state.defined.Clear();
  auto& alive = alive_[static_cast<size_t>(plan_.buffers[id].arena)];
  if (const auto own = alive.find(plan_.buffers[id].offset); own != alive.end() && own->second == id) {
    alive.erase(own);
  }
}

/// Returns the first range that a read of `id` needs and that holds nothing; `gap` is the first of its bytes that hold
/// nothing. Ops on a slice of a sub-vector read its owned segments only, so padding may hold nothing. Segments are
/// looked at only if one rank owns all of them; if several ranks do, each slice is written as a whole.
auto SectionRun::FirstMissing(ValueId id, const Interval& range, const Interval& gap, const Op& op)
    -> std::optional<Interval> {
  const auto* owner = AttributeOf<SubVectorId>(op.body, "sub_vector");
  if (owner == nullptr) {
    return gap;
  }
  const Value& value = plan_.values[id];
  const DefinedBytes& defined = At(value.buffer).defined;
  const SubVector& sub_vector = plan_.sub_vectors[*owner];
  const int64_t degree = plan_.mesh.size(sub_vector.axes);
  if (degree > 1 || value.num_elements() != sub_vector.length / degree) {
    return gap;
  }
  const int64_t rank = plan_.mesh.RankOf(point_.coordinates);
  const int64_t size = SizeOf(value.dtype);
  const int64_t slice_begin = OwnedSlice(sub_vector, plan_.mesh, rank).begin;
  for (const Segment& segment : sub_vector.segments) {
    const Interval owned = OwnedElementsOf(plan_, sub_vector, segment, rank);
    if (owned.empty() || !findings_.Spend(1)) {
      continue;
    }
    const Interval bytes{range.begin + (owned.begin - slice_begin) * size,
                         range.begin + (owned.end - slice_begin) * size};
    if (const auto missing = defined.FirstGap(bytes)) {
      return missing;
    }
  }
  return std::nullopt;
}

auto SectionRun::Read(ValueId id, const Op& op) -> void {
  const Value& value = plan_.values[id];
  const BufferId buffer_id = value.buffer;
  const BufferState& buffer_state = At(buffer_id);
  ValueState& state = At(id);
  const Interval range = RangeOf(value, point_);
  const auto [first, last] = buffer_state.defined.Meeting(range);
  findings_.Spend(1 + last - first);
  auto gap = buffer_state.defined.FirstGap(range, {first, last});
  gap = gap ? FirstMissing(id, range, *gap, op) : gap;
  if (gap) {
    const ParameterId parameter = value.role.parameter();
    const UnitId unit = parameter.valid() ? uses_.unit_of_parameter[static_cast<size_t>(parameter.index)] : UnitId{};
    Report("read-undefined"_rule, "reads {}, but bytes {} to {} of {} hold nothing{}", Name(id), gap->begin, gap->end,
           findings_.Name(buffer_id),
           unit.valid() ? fmt::format(": unit {} is not gathered", plan_.units[unit].name) : "");
  } else {
    // A name that was in use in this life of the buffer means what it meant then.
    const bool established = state.used >= buffer_state.born && state.used >= 0;
    for (size_t i = first; established && i < last; ++i) {
      const DefinedRange& defined = buffer_state.defined.ranges()[i];
      if (defined.killed_at > state.used && defined.fresh_at <= state.used && defined.killed.begin <= range.begin &&
          defined.killed.end >= range.end) {
        Report("read-after-overwrite"_rule, "reads {}, which op {} overwrote in place", Name(id), defined.killed_by);
        break;
      }
    }
    const SectionSet result_in = uses_.Of(id).result_in;
    if (strict_ && !established && !result_in.empty() && state.written >= 0) {
      Report("read-released"_rule, "reads {}, whose buffer {} was released since it was written", Name(id),
             findings_.Name(buffer_id));
    } else if (result_in.Has(section_) && !uses_.Of(id).is_carried && state.written < 0) {
      // Its bytes hold what an op in place has yet to overwrite.
      Report("read-early"_rule, "reads {} before the op that writes it", Name(id));
    }
  }
  if (findings_.empty()) {
    CheckName(id, range);
  }
  state.used = now_;
}

/// Checks that a name that no op writes is a view of bytes which ops wrote. The result of an op is not a container of
/// views: a second name of the same type for the same bytes stands for a result whose op is missing.
auto SectionRun::CheckName(ValueId id, const Interval& range) -> void {
  if (!uses_.Of(id).result_in.empty()) {
    return;
  }
  const Value& value = plan_.values[id];
  const Category category = plan_.buffers[value.buffer].category;
  if (category != Category::Activations && category != Category::Workspace) {
    return;
  }
  const auto last = last_written_.find({value.buffer, range.begin});
  if (last != last_written_.end() && plan_.values[last->second].dtype == value.dtype &&
      plan_.values[last->second].shape == value.shape) {
    Report("unwritten-value"_rule, "reads {}, which no op writes; its bytes hold {}", Name(id), Name(last->second));
  }
}

auto SectionRun::WriteScratch(ValueId id) -> void {
  const BufferId buffer = plan_.values[id].buffer;
  Touch(buffer);
  if (const auto held = At(buffer).defined.FirstHeld(Range(id))) {
    Report("overwrite-defined"_rule, "takes {} as scratch, but bytes {} to {} of {} hold something", Name(id),
           held->begin, held->end, findings_.Name(buffer));
  }
  ComeAlive(buffer);
  // Scratch that no release names lives for its op alone.
  if (!uses_.Of(buffer).released_in.Has(section_)) {
    Die(buffer);
  }
}

auto SectionRun::Write(const Access& access, int64_t count) -> void {
  const Value& value = plan_.values[access.value];
  const Buffer& buffer = plan_.buffers[value.buffer];
  BufferState& state = At(value.buffer);
  const Interval range = RangeOf(value, point_);
  const auto [first, last] = state.defined.Meeting(range);
  if (!findings_.Spend(4 + (last - first) + state.defined.ranges().size() / 16)) {
    return;
  }
  Touch(value.buffer);
  DefinedRange written{.bytes = range, .killed_at = 0, .killed = {}, .killed_by = 0};
  ValueState& written_value = At(access.value);
  written_value.fresh = access.kills.valid() ? At(access.kills).fresh : now_ + 1;
  if (access.kills.valid()) {
    // The constraints of the ops ask that both are the same bytes.
    written.killed_at = now_ + 1;
    written.killed = range;
    written.killed_by = index_;
    written.fresh_at = written_value.fresh;
  } else if (first < last && strict_ && buffer.arena != Arena::Host) {
    const Interval held = Intersect(state.defined.ranges()[first].bytes, range);
    Report("overwrite-defined"_rule, "writes {}, but bytes {} to {} of {} hold a value still", Name(access.value),
           held.begin, held.end, findings_.Name(value.buffer));
  }
  ComeAlive(value.buffer);
  state.defined.Write(written);
  // The loop is run at three of its indices; ranges side by side fill what lies between.
  const bool side_by_side = value.offset.repeat == range.size() || value.offset.repeat == -range.size();
  if (side_by_side && !value.offset.clamp && point_.repeat > 1 && point_.repeat == count - 1) {
    const Interval second = RangeOf(value, {.coordinates = point_.coordinates, .repeat = 1, .step = 0});
    written.bytes = {std::min(range.begin, second.begin), std::max(range.end, second.end)};
    state.defined.Write(written);
  }
  if (uses_.Of(value.buffer).is_viewed) {
    last_written_[{value.buffer, range.begin}] = access.value;
  }
  written_value.used = now_ + 1;
  written_value.written = now_ + 1;
}

/// Asks that what one op writes overlaps nothing else that it reads or writes, except the value that it overwrites.
auto SectionRun::CheckOverlaps(std::span<const Access> accesses) -> void {
  for (const Access& a : accesses) {
    if (a.kind == AccessKind::Read) {
      continue;
    }
    for (const Access& b : accesses) {
      if (&a == &b || (b.kind != AccessKind::Read && &b < &a) ||
          plan_.values[a.value].buffer != plan_.values[b.value].buffer) {
        continue;
      }
      // What an op adds onto, it reads under no other name: it would read sums.
      const bool overwritten = b.kind == AccessKind::Read && b.value == a.kills && a.kind == AccessKind::Write;
      if (!overwritten && !Intersect(Range(a.value), Range(b.value)).empty()) {
        Report("operand-overlap"_rule, "writes {} ({}) on bytes of {} ({})", Name(a.value), a.field, Name(b.value),
               b.field);
      }
    }
  }
}

auto SectionRun::Release(BufferId id) -> void {
  findings_.Spend(1);
  Touch(id);
  if (!At(id).alive) {
    Report("release-dead"_rule, "releases {}, which holds nothing here", findings_.Name(id));
  }
  Die(id);
}

auto SectionRun::Run(size_t index, int64_t repeat, int64_t count) -> bool {
  index_ = index;
  point_.repeat = repeat;
  // An op reads at an even moment and writes at the odd one after it.
  now_ += 2;
  const Op& op = plan_.section(section_).ops[index];
  if (const BufferId released = ReleasedBufferOf(op.body); released.valid()) {
    Release(released);
    return findings_.empty() && findings_.Spend(1);
  }
  const std::span<const Access> accesses = findings_.AccessesOf(section_, index);
  for (const Access& access : accesses) {
    if (access.kind == AccessKind::Read || access.kind == AccessKind::ReadWrite) {
      Read(access.kills.valid() ? access.kills : access.value, op);
    }
  }
  if (findings_.empty()) {
    CheckOverlaps(accesses);
  }
  if (!findings_.empty()) {
    return false;
  }
  for (const Access& access : accesses) {
    if (access.kind == AccessKind::Read) {
      continue;
    }
    if (access.kind == AccessKind::ReadWrite && !access.kills.valid()) {
      At(access.value).written = now_ + 1;
      continue;
    }
    if (!op.when.always()) {
      Report("predicated-write"_rule, "writes {} only where {} allows", Name(access.value),
             plan_.scalars[op.when.scalar].name);
    }
    if (access.is_scratch) {
      WriteScratch(access.value);
    } else {
      Write(access, count);
    }
    if (!findings_.empty()) {
      return false;
    }
  }
  return findings_.Spend(1);
}

auto SectionRun::End(size_t) -> bool {
  index_ = begins_.back();
  begins_.pop_back();
  if (!strict_) {
    return true;
  }
  for (const auto& [id, before] : journals_.back()) {
    const std::vector<Interval> after = At(id).defined.HeldRanges();
    if (!findings_.Spend(after.size())) {
      return false;
    }
    if (plan_.buffers[id].arena != Arena::Host && after != before) {
      const auto total = [](const std::vector<Interval>& ranges) {
        int64_t bytes = 0;
        for (const Interval& range : ranges) {
          bytes += range.size();
        }
        return bytes;
      };
      Report("loop-state"_rule, "{} holds {} bytes when the body begins and {} other when it ends", findings_.Name(id),
             total(before), total(after));
    }
  }
  return findings_.empty();
}

template <class Wanted>
auto SectionRun::TouchedBuffers(Wanted&& wanted) const -> std::vector<BufferId> {
  std::vector<BufferId> buffers;
  std::ranges::copy_if(states_.buffers.Touched(), std::back_inserter(buffers), wanted);
  std::ranges::sort(buffers);
  return buffers;
}

auto SectionRun::Finish() -> void {
  if (!findings_.empty() || !strict_ || !plan_.Established(PassKind::Lifecycle)) {
    return;
  }
  const auto is_left = [&](BufferId id) { return !IsPersistent(plan_.buffers[id].arena) && At(id).alive; };
  for (const BufferId id : TouchedBuffers(is_left)) {
    findings_.Add("not-released"_rule, "{} is not released at the end of section {}", findings_.Name(id),
                  ToText(section_));
  }
}

auto SectionRun::Held() -> HeldState {
  HeldState state;
  for (const BufferId id : TouchedBuffers([&](BufferId id) { return IsPersistent(plan_.buffers[id].arena); })) {
    for (const Interval& range : At(id).defined.HeldRanges()) {
      state.push_back({id, range});
    }
  }
  return state;
}

}  // namespace shardc
