#include "tests/run/hazards.h"

#include <array>
#include <concepts>
#include <optional>
#include <utility>

#include "compiler/verify/internal.h"

namespace shardc {
namespace {

/// Bytes of an arena, or a scalar as one byte at its number in an arena of its own.
struct Place {
  int arena = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool written = false;

  auto Conflicts(const Place& other) const -> bool {
    return arena == other.arena && begin < other.end && other.begin < end && (written || other.written);
  }
};
constexpr int ScalarArena = NumArenas;

struct ScalarPlaces : IgnoreFields {
  ScalarPlaces(const Plan* the_plan, std::vector<Place>* the_places) : plan(*the_plan), places(*the_places) {}

  const Plan& plan;
  std::vector<Place>& places;
  template <class T>
  auto Attr(std::string_view, const T& value) -> void {
    if constexpr (std::same_as<T, ScalarId>) {
      // What control judges losses by is unset in most plans.
      if (value.valid()) {
        places.push_back({ScalarArena, value.index, value.index + 1, plan.scalars[value].kind != ScalarKind::Schedule});
      }
    }
  }
};

auto PlacesOf(const Plan& plan, const Op& op, int64_t rank, int64_t repeat) -> std::vector<Place> {
  std::vector<Place> places;
  if (op.As<op::Carry>() != nullptr) {
    return places;
  }
  for (const Access& access : AccessesOf(op.body)) {
    const Value& value = plan.values[access.value];
    const Buffer& buffer = plan.buffers[value.buffer];
    const int64_t begin =
        buffer.offset +
        value.offset.Evaluate({.coordinates = plan.mesh.CoordinatesOf(rank), .repeat = repeat, .step = 0});
    places.push_back(
        {static_cast<int>(buffer.arena), begin, begin + value.bytes().value, access.kind != AccessKind::Read});
  }
  if (const auto* release = op.As<op::Release>()) {
    const Buffer& buffer = plan.buffers[release->buffer];
    places.push_back({static_cast<int>(buffer.arena), buffer.offset, buffer.offset + buffer.bytes.value, true});
  }
  VisitBody(op.body, [&](const auto& body) { VisitFields(body, ScalarPlaces(&plan, &places)); });
  if (!op.when.always()) {
    places.push_back({ScalarArena, op.when.scalar.index, op.when.scalar.index + 1, false});
  }
  return places;
}

/// One run of one op.
struct Turn {
  const Op* op = nullptr;
  int64_t repeat = 0;
};

auto TurnsOf(const std::vector<Op>& ops) -> std::vector<Turn> {
  std::vector<Turn> turns;
  size_t head = 0;
  int64_t count = 0;
  int64_t repeat = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    turns.push_back({&ops[i], repeat});
    if (const auto* loop = ops[i].As<op::Repeat>()) {
      head = i;
      count = loop->count;
    } else if (ops[i].As<op::EndRepeat>() != nullptr) {
      repeat = repeat + 1 < count ? repeat + 1 : 0;
      i = repeat > 0 ? head - 1 : i;
    }
  }
  return turns;
}

/// By turn: the earlier turns that are over when it begins, a bit each.
using Words = std::vector<uint64_t>;
constexpr size_t WordBits = 64;

auto Orders(const std::vector<Turn>& turns, int32_t num_events) -> std::vector<Words> {
  std::vector<Words> before(turns.size(), Words(turns.size() / WordBits + 1, 0));
  std::vector<std::optional<size_t>> signalled(static_cast<size_t>(num_events));
  std::array<std::optional<size_t>, NumStreams> last;
  for (size_t i = 0; i < turns.size(); ++i) {
    const Op& op = *turns[i].op;
    const auto follow = [&](const std::optional<size_t>& earlier) {
      if (earlier) {
        for (size_t w = 0; w < before[i].size(); ++w) {
          before[i][w] |= before[*earlier][w];
        }
        before[i][*earlier / WordBits] |= uint64_t{1} << (*earlier % WordBits);
      }
    };
    follow(last[static_cast<size_t>(op.stream)]);
    for (const EventId event : op.waits) {
      follow(signalled[static_cast<size_t>(event.index)]);
    }
    last[static_cast<size_t>(op.stream)] = i;
    if (op.signals.valid()) {
      signalled[static_cast<size_t>(op.signals.index)] = i;
    }
  }
  return before;
}

auto Conflict(const std::vector<Place>& places, const std::vector<Place>& others) -> bool {
  for (const Place& a : places) {
    for (const Place& b : others) {
      if (a.Conflicts(b)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace

Hazards::Hazards(const Plan& plan) {
  for (size_t s = 0; s < NumSections; ++s) {
    const std::vector<Turn> turns = TurnsOf(plan.sections[s].ops);
    for (int64_t rank = 0; rank < plan.mesh.num_ranks(); ++rank) {
      std::vector<std::vector<Place>> places;
      for (const Turn& turn : turns) {
        places.push_back(PlacesOf(plan, *turn.op, rank, turn.repeat));
      }
      for (size_t j = 0; j < turns.size(); ++j) {
        for (size_t i = 0; i < j; ++i) {
          if (turns[i].op->stream != turns[j].op->stream && Conflict(places[i], places[j])) {
            pairs_[s].push_back({i, j});
          }
        }
      }
    }
  }
}

auto Hazards::CountUnordered(const Plan& plan) const -> int64_t {
  int64_t unordered = 0;
  for (size_t s = 0; s < NumSections; ++s) {
    const auto before = Orders(TurnsOf(plan.sections[s].ops), plan.num_events);
    for (const auto& [earlier, later] : pairs_[s]) {
      unordered += (before[later][earlier / WordBits] >> (earlier % WordBits) & 1) == 0 ? 1 : 0;
    }
  }
  return unordered;
}

}  // namespace shardc
