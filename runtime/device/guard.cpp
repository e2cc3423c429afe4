#include "runtime/device/guard.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/copied_pieces.h"
#include "compiler/plan/names.h"
#include "compiler/plan/red_zone.h"

namespace shardc {

/// No value that a kernel is likely to write, and no NaN.
static constexpr uint64_t ZonePaint = 0xa5a5'a5a5'a5a5'a5a5;

/// Eight bytes that are signalling NaN in `dtype`: all exponent bits set, the first bit of the fraction clear, another
/// set (IEEE 754-2019, 6.2.1). As an index they lie outside of any table: a large i32, a negative i64.
static auto DeadPaint(DType dtype) -> uint64_t {
  switch (dtype) {
    case DType::F32:
    case DType::BF16:
    case DType::F16:
    case DType::I32: return 0x7fa0'7fa0'7fa0'7fa0;
    case DType::F64: return 0x7ff4'7ff4'7ff4'7ff4;
    case DType::I64: return 0xfff4'7ff4'7ff4'7ff4;
  }
  CHECK(false, "dtype {}", static_cast<int>(dtype));
}

/// The byte that `paint` has at an offset of an arena: paint lies on multiples of eight.
static auto PaintByte(uint64_t paint, int64_t offset) -> std::byte {
  return static_cast<std::byte>(paint >> (8 * (offset % 8)));
}

auto Guard::Paint(const ArenaState& arena, const Interval& where, uint64_t paint) -> Status {
  return ForEachPiece(where.size(), [&](int64_t begin, int64_t size) {
    return PaintPiece(arena, {where.begin + begin, where.begin + begin + size}, paint);
  });
}

auto Guard::PaintPiece(const ArenaState& arena, const Interval& where, uint64_t paint) -> Status {
  // All queues are alike: in guard mode an op is over when its turn is.
  Queue& queue = device_.queue(Stream::Compute);
  std::byte* const to = queue.BeginWrite(arena.base + where.begin, where.size(), scratch_);
  int64_t at = where.begin;
  for (; at < where.end && at % 8 != 0; ++at) {
    to[at - where.begin] = PaintByte(paint, at);
  }
  for (; where.end - at >= 8; at += 8) {
    std::memcpy(to + (at - where.begin), &paint, sizeof(paint));
  }
  for (; at < where.end; ++at) {
    to[at - where.begin] = PaintByte(paint, at);
  }
  return queue.EndWrite(arena.base + where.begin, where.size(), scratch_);
}

/// Returns the index of the first byte that is not as `paint` paints it, of bytes that lie at an offset of an arena.
static auto FirstChange(std::span<const std::byte> bytes, int64_t offset, uint64_t paint) -> std::optional<size_t> {
  const auto is_painted = [&](size_t i) { return bytes[i] == PaintByte(paint, offset + static_cast<int64_t>(i)); };
  size_t at = 0;
  for (; at < bytes.size() && at < sizeof(paint); ++at) {
    if (!is_painted(at)) {
      return at;
    }
  }
  // Bytes that are alike eight apart are as the first eight. Most of what is asked for is painted.
  if (at == bytes.size() || std::memcmp(&bytes[0], &bytes[at], bytes.size() - at) == 0) {
    return std::nullopt;
  }
  while (is_painted(at)) {
    ++at;
  }
  return at;
}

auto Guard::FindChange(const ArenaState& arena, const Interval& where, uint64_t paint)
    -> ErrorOr<std::optional<Change>> {
  std::optional<Change> change;
  RETURN_IF_ERROR(ForEachRead(arena, where, [&](int64_t offset, std::span<const std::byte> bytes) {
    if (const auto at = change ? std::nullopt : FirstChange(bytes, offset, paint)) {
      change = {.offset = offset + static_cast<int64_t>(*at), .holds = bytes[*at]};
    }
  }));
  return change;
}

auto Guard::ForEachRead(const ArenaState& arena, const Interval& where, const ReadFunction& function) -> Status {
  return device_.queue(Stream::Compute)
      .ReadInPieces(arena.base + where.begin, where.size(), scratch_,
                    [&](const std::byte* piece, int64_t begin, int64_t size) -> Status {
                      function(where.begin + begin, {piece, static_cast<size_t>(size)});
                      return Success{};
                    });
}

auto Guard::Create(const Plan& plan, RankDevice& device) -> ErrorOr<std::unique_ptr<Guard>> {
  std::unique_ptr<Guard> guard(new Guard(plan, device));
  RETURN_IF_ERROR(guard->Lay());
  return guard;
}

auto Guard::Lay() -> Status {
  buffers_.resize(static_cast<size_t>(plan_.buffers.size()));
  for (const BufferId id : plan_.buffers.ids()) {
    // Until a value says otherwise.
    StateOf(id).paint = DeadPaint(DType::F32);
  }
  for (const Value& value : plan_.values) {
    StateOf(value.buffer).paint = DeadPaint(value.dtype);
  }
  for (size_t i = 0; i < NumArenas; ++i) {
    ArenaState& state = arenas_[i];
    state.base = device_.Base(static_cast<Arena>(i));
    state.bytes = plan_.arena_bytes[i];
    const auto granules = static_cast<size_t>(CeilDiv(state.bytes, GranuleBytes));
    state.tenants.resize(granules);
    state.alive.resize(granules);
    const auto pages = static_cast<size_t>(CeilDiv(state.bytes, PageSize()));
    state.holds_buffers.resize(pages);
    state.written.resize(pages);
    RETURN_IF_ERROR(Paint(state, {0, state.bytes}, DeadPaint(DType::F32)));
  }
  for (const BufferId id : plan_.buffers.ids()) {
    const Buffer& buffer = plan_.buffers[id];
    ArenaState& arena = StateOf(buffer.arena);
    FAIL_IF(buffer.offset % GranuleBytes != 0 || buffer.offset < RedZoneBytes ||
                buffer.offset + buffer.bytes.value + RedZoneBytes > arena.bytes,
            ExitCode::RecipeRejected, "the plan says guard, but has no red zones round {}", NameOf(plan_, id));
    for (int64_t page = buffer.offset / PageSize(); page * PageSize() < buffer.offset + buffer.bytes.value; ++page) {
      arena.holds_buffers[static_cast<size_t>(page)] = true;
    }
    if (IsPersistent(buffer.arena)) {
      RETURN_IF_ERROR(Bear(id));
    }
  }
  return Success{};
}

auto Guard::TouchesOf(const Plan& plan, const Op& op, size_t index) -> OpTouches {
  OpTouches result{.touches = {}, .name = fmt::format("op {} {}", index, ToText(op.kind()))};
  for (const Access& access : AccessesOf(op.body)) {
    const BufferId buffer = plan.values[access.value].buffer;
    // A write over an operand follows its read.
    const bool reads = access.kind != AccessKind::Write;
    const auto same = std::find_if(result.touches.begin(), result.touches.end(),
                                   [&](const OpTouches::Touch& touch) { return touch.buffer == buffer; });
    if (same == result.touches.end()) {
      result.touches.push_back({buffer, reads});
    } else {
      same->reads = same->reads || reads;
    }
  }
  return result;
}

auto Guard::Name(BufferId id) const -> std::string {
  const Buffer& buffer = plan_.buffers[id];
  return fmt::format("{} ({} bytes in the {} arena)", NameOf(plan_, id), buffer.bytes.value, ToText(buffer.arena));
}

auto Guard::RegionOf(BufferId id) const -> Interval {
  const Buffer& buffer = plan_.buffers[id];
  return {buffer.offset - RedZoneBytes,
          std::min(RoundUp(buffer.offset + buffer.bytes.value + RedZoneBytes, GranuleBytes),
                   plan_.arena_bytes[static_cast<size_t>(buffer.arena)])};
}

auto Guard::PaintOf(BufferId tenant) const -> uint64_t {
  return tenant.valid() ? buffers_[static_cast<size_t>(tenant.index)].paint : DeadPaint(DType::F32);
}

auto Guard::Bear(BufferId id) -> Status {
  const Buffer& buffer = plan_.buffers[id];
  ArenaState& arena = StateOf(buffer.arena);
  const Interval region = RegionOf(id);
  const int64_t end_granule = CeilDiv(region.end, GranuleBytes);
  RETURN_IF_ERROR(CheckDead(buffer.arena, region.begin / GranuleBytes, end_granule));
  for (int64_t granule = region.begin / GranuleBytes; granule < end_granule; ++granule) {
    const auto g = static_cast<size_t>(granule);
    FAIL_IF(arena.alive[g], ExitCode::RecipeRejected, "the plan says guard, but has no red zones between {} and {}",
            NameOf(plan_, id), NameOf(plan_, arena.tenants[g]));
    arena.alive[g] = true;
    arena.tenants[g] = id;
  }
  const Interval body{buffer.offset, buffer.offset + buffer.bytes.value};
  RETURN_IF_ERROR(Paint(arena, {region.begin, body.begin}, ZonePaint));
  RETURN_IF_ERROR(Paint(arena, body, StateOf(id).paint));
  RETURN_IF_ERROR(Paint(arena, {body.end, region.end}, ZonePaint));
  StateOf(id).alive = true;
  StateOf(id).toucher = nullptr;
  return Success{};
}

auto Guard::CheckDead(Arena arena_name, int64_t begin_granule, int64_t end_granule) -> Status {
  const ArenaState& arena = StateOf(arena_name);
  const auto paint_at = [&](int64_t granule) { return PaintOf(arena.tenants[static_cast<size_t>(granule)]); };
  const auto is_dead = [&](int64_t granule) { return !arena.alive[static_cast<size_t>(granule)]; };
  for (int64_t begin = begin_granule; begin < end_granule;) {
    int64_t end = begin + 1;
    if (!is_dead(begin)) {
      begin = end;
      continue;
    }
    // Neighbours with one paint are looked at together.
    while (end < end_granule && is_dead(end) && paint_at(end) == paint_at(begin)) {
      ++end;
    }
    const Interval where{begin * GranuleBytes, std::min(arena.bytes, end * GranuleBytes)};
    ASSIGN_OR_RETURN(const auto looked, FindChange(arena, where, paint_at(begin)));
    if (const std::optional<Change>& change = looked) {
      const BufferId last = arena.tenants[static_cast<size_t>(change->offset / GranuleBytes)];
      return Fail(ExitCode::InternalFault,
                  "guard: byte {} of the {} arena was written where no buffer lives: it holds 0x{:02x}{}",
                  change->offset, ToText(arena_name), static_cast<int>(change->holds),
                  last.valid() ? fmt::format("; the last there was {}, byte {}", Name(last),
                                             change->offset - plan_.buffers[last].offset)
                               : "");
    }
    begin = end;
  }
  return Success{};
}

auto Guard::CheckZones(BufferId id, std::string_view when) -> Status {
  const Buffer& buffer = plan_.buffers[id];
  const ArenaState& arena = StateOf(buffer.arena);
  const Interval region = RegionOf(id);
  const Interval body{buffer.offset, buffer.offset + buffer.bytes.value};
  for (const Interval& zone : {Interval{region.begin, body.begin}, Interval{body.end, region.end}}) {
    ASSIGN_OR_RETURN(const auto looked, FindChange(arena, zone, ZonePaint));
    if (const std::optional<Change>& change = looked) {
      const OpTouches* toucher = StateOf(id).toucher;
      return Fail(ExitCode::InternalFault,
                  "guard: byte {} of {} lies outside of it and was written {}: it holds 0x{:02x}{}",
                  change->offset - body.begin, Name(id), when, static_cast<int>(change->holds),
                  toucher != nullptr ? fmt::format("; {} touched the buffer last before", toucher->name) : "");
    }
  }
  return Success{};
}

auto Guard::MarkWrittenPages(BufferId id, std::vector<bool>& written) -> Status {
  const Buffer& buffer = plan_.buffers[id];
  const int64_t end = buffer.offset + buffer.bytes.value;
  const auto is_written = [&](int64_t offset) { return written[static_cast<size_t>(offset / PageSize())]; };
  // Pages at the front that are known to be written are not read again.
  Interval where{buffer.offset, end};
  while (where.begin < end && is_written(where.begin)) {
    where.begin = (where.begin / PageSize() + 1) * PageSize();
  }
  return ForEachRead(StateOf(buffer.arena), {std::min(where.begin, end), end},
                     [&](int64_t begin, std::span<const std::byte> bytes) {
                       for (size_t at = 0; at < bytes.size();) {
                         const int64_t offset = begin + static_cast<int64_t>(at);
                         const auto in_page = static_cast<size_t>(PageSize() - offset % PageSize());
                         const auto of_page = bytes.subspan(at, std::min(in_page, bytes.size() - at));
                         if (!is_written(offset) && FirstChange(of_page, offset, PaintOf(id))) {
                           written[static_cast<size_t>(offset / PageSize())] = true;
                         }
                         at += of_page.size();
                       }
                     });
}

auto Guard::BeforeOp(const OpTouches& op) -> Status {
  for (const auto& [buffer, reads] : op.touches) {
    if (StateOf(buffer).alive) {
      RETURN_IF_ERROR(CheckZones(buffer, "before this op"));
    } else if (reads) {
      return Fail(ExitCode::InternalFault, "guard: {} reads {}, which holds nothing: it was released, or never written",
                  op.name, Name(buffer));
    } else {
      RETURN_IF_ERROR(Bear(buffer));
    }
  }
  return Success{};
}

auto Guard::AfterOp(const OpTouches& op) -> Status {
  for (const auto& [buffer, reads] : op.touches) {
    RETURN_IF_ERROR(CheckZones(buffer, "by this op"));
    StateOf(buffer).toucher = &op;
  }
  return Success{};
}

auto Guard::Release(BufferId id) -> Status {
  BufferState& state = StateOf(id);
  if (!state.alive) {
    return Success{};
  }
  RETURN_IF_ERROR(CheckZones(id, "before its release"));
  state.alive = false;
  ArenaState& arena = StateOf(plan_.buffers[id].arena);
  RETURN_IF_ERROR(MarkWrittenPages(id, arena.written));
  const Interval region = RegionOf(id);
  RETURN_IF_ERROR(Paint(arena, region, state.paint));
  for (int64_t granule = region.begin / GranuleBytes; granule * GranuleBytes < region.end; ++granule) {
    arena.alive[static_cast<size_t>(granule)] = false;
  }
  return Success{};
}

auto Guard::EndSection() -> Status {
  for (const BufferId id : plan_.buffers.ids()) {
    if (!StateOf(id).alive) {
      continue;
    }
    if (IsPersistent(plan_.buffers[id].arena)) {
      RETURN_IF_ERROR(CheckZones(id, "since the last op that touched it"));
    } else {
      RETURN_IF_ERROR(Release(id));
    }
  }
  for (size_t i = 0; i < NumArenas; ++i) {
    RETURN_IF_ERROR(CheckDead(static_cast<Arena>(i), 0, std::ssize(arenas_[i].tenants)));
  }
  return Success{};
}

auto Guard::MeasurePages() -> ErrorOr<std::vector<PageUse>> {
  std::vector<PageUse> uses;
  for (size_t i = 0; i < NumArenas; ++i) {
    const auto arena = static_cast<Arena>(i);
    std::vector<bool> written = arenas_[i].written;
    for (const BufferId id : plan_.buffers.ids()) {
      if (plan_.buffers[id].arena == arena && buffers_[static_cast<size_t>(id.index)].alive) {
        RETURN_IF_ERROR(MarkWrittenPages(id, written));
      }
    }
    const auto in_bytes = [](const std::vector<bool>& pages) {
      return Bytes{std::count(pages.begin(), pages.end(), true) * PageSize()};
    };
    uses.push_back({.arena = arena, .with_buffers = in_bytes(arenas_[i].holds_buffers), .written = in_bytes(written)});
  }
  return uses;
}

}  // namespace shardc
