// Memory as a table: sizes without overflow, views inside their buffers, buffers inside their arenas, and buffers that
// live as long as the plan apart from each other. When buffers live is the matter of lives.cpp.
#include <algorithm>
#include <concepts>

#include "compiler/base/devices.h"
#include "compiler/base/plan_limits.h"
#include "compiler/plan/red_zone.h"
#include "compiler/verify/internal.h"

namespace shardc {

namespace {

/// Returns the bytes of `shape`; nothing if a dim is under 1 or the product is over MostBytes.
auto CheckedBytes(const Dims& shape, DType dtype) -> std::optional<int64_t> {
  int64_t bytes = SizeOf(dtype);
  for (const int64_t size : shape) {
    if (size < 1 || __builtin_mul_overflow(bytes, size, &bytes) || bytes > MostBytes) {
      return std::nullopt;
    }
  }
  return bytes;
}

class MemoryVerifier {
 public:
  MemoryVerifier(const Plan& plan, Findings& findings)
      : plan_(plan), findings_(findings), uses_(static_cast<size_t>(plan.values.size())) {}

  auto Shapes() -> void;
  auto Buffers() -> void;
  auto CollectLoops() -> void;
  auto Views() -> void;
  auto RankExpressions() -> void;
  auto PersistentOverlap() -> void;
  auto GatheredWrites() -> void;
  auto Arenas() -> void;

 private:
  auto ViewOffset(ValueId id) -> void;

  const Plan& plan_;
  Findings& findings_;
  struct Use {
    /// Iterations of the longest loop that touches the value.
    int64_t repeats = 1;
    bool is_outside_loop = false;
  };
  /// By value.
  std::vector<Use> uses_;
};

auto MemoryVerifier::Shapes() -> void {
  for (const Parameter& parameter : plan_.parameters) {
    if (!CheckedBytes(parameter.shape, parameter.dtype)) {
      findings_.Add("shape-size"_rule, "parameter {} is {}; dims are 1 or more, bytes {} at most", parameter.name,
                    ToText(parameter.shape), MostBytes);
    }
  }
  for (const ValueId id : plan_.values.ids()) {
    const Value& value = plan_.values[id];
    if (!CheckedBytes(value.shape, value.dtype)) {
      findings_.Add("shape-size"_rule, "value {} is {}; dims are 1 or more, bytes {} at most", findings_.Name(id),
                    ToText(value.shape), MostBytes);
    }
    for (const Placement& placement : value.placement) {
      if (placement.kind == PlacementKind::Shard &&
          (placement.dim < 0 || static_cast<size_t>(placement.dim) >= value.shape.size())) {
        findings_.Add("placement-dim"_rule, "value {} is sharded at dim {} of {}", findings_.Name(id), placement.dim,
                      ToText(value.shape));
      }
    }
  }
  for (const SubVectorId id : plan_.sub_vectors.ids()) {
    const int64_t length = plan_.sub_vectors[id].length;
    if (length < 1 || length > MostBytes / 8) {
      findings_.Add("shape-size"_rule, "sub-vector v{} has length {}", id.index, length);
    }
  }
}

auto MemoryVerifier::Buffers() -> void {
  const bool allocated = plan_.Established(PassKind::Allocate);
  const int64_t red_zone = RedZoneOf(plan_);
  for (const int64_t bytes : plan_.arena_bytes) {
    if (bytes < 0 || bytes > MostBytes) {
      findings_.Add("buffer-size"_rule, "an arena of {} bytes", bytes);
    }
  }
  const int64_t alignment = FactsOf(plan_.device).offset_alignment;
  for (const BufferId id : plan_.buffers.ids()) {
    const Buffer& buffer = plan_.buffers[id];
    if (buffer.bytes.value < 1 || buffer.bytes.value > MostBytes) {
      findings_.Add("buffer-size"_rule, "buffer {} has {} bytes", findings_.Name(id), buffer.bytes.value);
      continue;
    }
    if (!allocated && buffer.offset == -1) {
      continue;
    }
    const int64_t arena = plan_.arena_bytes[static_cast<size_t>(buffer.arena)];
    if (buffer.offset < 0 || buffer.offset % alignment != 0) {
      findings_.Add("buffer-alignment"_rule, "buffer {} lies at {}, no multiple of {}", findings_.Name(id),
                    buffer.offset, alignment);
    } else if (buffer.offset > arena || buffer.bytes.value > arena - buffer.offset) {
      findings_.Add("outside-arena"_rule, "buffer {} has {} bytes at {}; the {} arena has {}", findings_.Name(id),
                    buffer.bytes.value, buffer.offset, ToText(buffer.arena), arena);
    } else if (buffer.offset < red_zone || buffer.bytes.value + red_zone > arena - buffer.offset) {
      findings_.Add("red-zone"_rule,
                    "buffer {} has {} bytes at {}; run.guard asks for {} unused ones on each side, and "
                    "the {} arena has {}",
                    findings_.Name(id), buffer.bytes.value, buffer.offset, red_zone, ToText(buffer.arena), arena);
    }
  }
}

auto MemoryVerifier::CollectLoops() -> void {
  LoopTracker loops;
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    loops.Enter(op);
    for (const Access& access : findings_.AccessesOf(section, index)) {
      for (const ValueId id : {access.value, access.kills}) {
        if (id.valid()) {
          Use& use = uses_[static_cast<size_t>(id.index)];
          use.repeats = std::max(use.repeats, loops.count());
          use.is_outside_loop = use.is_outside_loop || !loops.in_loop();
        }
      }
    }
  });
}

auto MemoryVerifier::ViewOffset(ValueId id) -> void {
  const Value& value = plan_.values[id];
  const Buffer& buffer = plan_.buffers[value.buffer];
  // In a loop an offset begins with that of the first iteration, and grows by the same in each further one.
  if (value.offset.step != 0 || value.offset.equals || (value.offset.clamp && value.offset.repeat != 0)) {
    findings_.Add("offset-form"_rule, "value {} lies at {}; offsets are affine in rank and repeat index",
                  findings_.Name(id), ToText(value.offset));
    return;
  }
  // Up to the shard pass the microbatch loop is not there yet.
  const Use& use = uses_[static_cast<size_t>(id.index)];
  if (value.offset.repeat != 0 && use.is_outside_loop && plan_.Established(PassKind::Shard)) {
    findings_.Add("repeat-outside"_rule, "value {} lies at {} and is touched outside of a repeat", findings_.Name(id),
                  ToText(value.offset));
  }
  const auto bounds = BoundsOf(value.offset, plan_.mesh, use.repeats, 0);
  if (!bounds) {
    findings_.Add("offset-overflow"_rule, "value {} lies at {}, which overflows", findings_.Name(id),
                  ToText(value.offset));
    return;
  }
  const int64_t bytes = value.bytes().value;
  if (bounds->first < 0 || bounds->second > buffer.bytes.value - bytes) {
    findings_.Add("value-outside-buffer"_rule, "value {} has {} bytes at {} (up to {}); buffer {} has {}",
                  findings_.Name(id), bytes, ToText(value.offset), bounds->second, findings_.Name(value.buffer),
                  buffer.bytes.value);
  }
  // Sizes of elements are powers of two: all of these are multiples of one if their bits together are.
  int64_t bits = value.offset.base | value.offset.repeat;
  for (const int64_t factor : value.offset.axis) {
    bits |= factor;
  }
  if (value.offset.clamp) {
    bits |= value.offset.clamp->begin | value.offset.clamp->end;
  }
  if (bits % SizeOf(value.dtype) != 0) {
    findings_.Add("value-alignment"_rule, "value {} lies at {}, no multiple of its element size {}", findings_.Name(id),
                  ToText(value.offset), SizeOf(value.dtype));
  }
}

auto MemoryVerifier::Views() -> void {
  for (const ValueId id : plan_.values.ids()) {
    ViewOffset(id);
  }
}

/// Collects the rank expressions among an op's attributes.
struct RankExprFinder : IgnoreFields {
  std::vector<std::pair<std::string_view, const RankExpr*>> found;
  template <class T>
  auto Attr(std::string_view name, const T& value) -> void {
    if constexpr (std::same_as<T, RankExpr>) {
      found.emplace_back(name, &value);
    }
  }
};

auto MemoryVerifier::RankExpressions() -> void {
  LoopTracker loops;
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    loops.Enter(op);
    if (!HasAttribute<RankExpr>[op.body.index()]) {
      return;
    }
    RankExprFinder finder;
    VisitBody(op.body, [&](const auto& body) { VisitFields(body, finder); });
    for (const auto& [name, expr] : finder.found) {
      const auto bounds = BoundsOf(*expr, plan_.mesh, loops.count(), plan_.run.steps);
      if (!bounds || bounds->first < 0) {
        findings_.AddOp(section, index, "offset-overflow"_rule, "{} is {}, which overflows or falls below 0", name,
                        ToText(*expr));
      }
    }
  });
}

/// Asks that buffers of arenas that outlive sections do not overlap: they live all the time.
auto MemoryVerifier::PersistentOverlap() -> void {
  if (!plan_.Established(PassKind::Allocate)) {
    return;
  }
  std::vector<BufferId> lasting;
  for (const BufferId id : plan_.buffers.ids()) {
    if (IsPersistent(plan_.buffers[id].arena)) {
      lasting.push_back(id);
    }
  }
  const int64_t apart = BytesBetweenBuffers(plan_);
  const auto begin = [&](BufferId id) { return std::pair{plan_.buffers[id].arena, plan_.buffers[id].offset}; };
  std::sort(lasting.begin(), lasting.end(), [&](BufferId a, BufferId b) { return begin(a) < begin(b); });
  for (size_t i = 1; i < lasting.size(); ++i) {
    const Buffer& before = plan_.buffers[lasting[i - 1]];
    const Buffer& after = plan_.buffers[lasting[i]];
    if (before.arena == after.arena && before.offset + before.bytes.value + apart > after.offset) {
      findings_.Add("buffer-overlap"_rule, "buffers {} ({} bytes at {}) and {} (at {}) overlap{} in the {} arena",
                    findings_.Name(lasting[i - 1]), before.bytes.value, before.offset, findings_.Name(lasting[i]),
                    after.offset, apart > 0 ? ", red zones counted," : "", ToText(before.arena));
    }
  }
}

/// Asks that only all_gather writes the arena that peers read: it alone has a barrier before its writes.
auto MemoryVerifier::GatheredWrites() -> void {
  if (std::none_of(plan_.buffers.begin(), plan_.buffers.end(),
                   [](const Buffer& buffer) { return buffer.arena == Arena::Gathered; })) {
    return;
  }
  ForEachOp(plan_, [&](SectionKind section, size_t index, const Op& op) {
    for (const Access& access : findings_.AccessesOf(section, index)) {
      if (access.kind != AccessKind::Read && FactsOf(op).collective != CollectiveKind::AllGather &&
          plan_.buffers[plan_.values[access.value].buffer].arena == Arena::Gathered) {
        findings_.AddOp(section, index, "gathered-write"_rule,
                        "{} writes {} in the gathered arena, which the peers read too: all_gather alone writes there",
                        ToText(op.kind()), findings_.Name(access.value));
      }
    }
  });
}

/// Asks that an arena has no more bytes than its buffers take: a run takes all of them.
auto MemoryVerifier::Arenas() -> void {
  std::array<int64_t, NumArenas> ends{};
  for (const Buffer& buffer : plan_.buffers) {
    int64_t& end = ends[static_cast<size_t>(buffer.arena)];
    end = std::max(end, buffer.offset + buffer.bytes.value + RedZoneOf(plan_));
  }
  for (size_t i = 0; i < NumArenas; ++i) {
    if (plan_.arena_bytes[i] > RoundUp(ends[i], FactsOf(plan_.device).offset_alignment)) {
      findings_.Add("arena-unused"_rule, "the {} arena has {} bytes, and its buffers end at {}",
                    ToText(static_cast<Arena>(i)), plan_.arena_bytes[i], ends[i]);
    }
  }
}

}  // namespace

auto VerifyMemory(const Plan& plan, Findings& findings) -> void {
  MemoryVerifier verifier(plan, findings);
  verifier.Shapes();
  verifier.Buffers();
  if (!findings.empty()) {
    return;
  }
  verifier.CollectLoops();
  verifier.Views();
  verifier.RankExpressions();
  verifier.PersistentOverlap();
  verifier.GatheredWrites();
  if (findings.empty()) {
    verifier.Arenas();
  }
}

}  // namespace shardc
