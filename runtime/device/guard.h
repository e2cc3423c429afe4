// Guard mode (`[run] guard`): watches the memory of one rank while its plan runs. A test mode: it costs memory (red
// zones) and time (every byte is painted and compared at each release).
//
//   red zones     painted round a buffer when its life begins, compared before and after every op that touches the
//                 buffer and at its release; those of persistent buffers also at the end of each section
//   dead bytes    what no buffer lives in holds signalling NaN, in the element type of the last buffer there, bad as an
//                 index too. Painted before the first op and at each release; compared when the next buffer takes the
//                 bytes and at the end of each section, so that the arenas are found painted before each step
//   page canaries a page was written where its paint has changed: counted against the pages that hold buffers. Painted
//                 pages all exist, so Mapping::Touched says nothing in this mode
//
// A read of dead bytes is not noticed as such: it makes NaN of everything that depends on it. An op that by the plan
// itself reads a buffer without a life is refused.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/device.h"

namespace shardc {

/// The buffers that one op touches.
struct OpTouches {
  struct Touch {
    BufferId buffer;
    /// The op reads it, or needs what it holds.
    bool reads = false;
  };
  std::vector<Touch> touches;
  /// For messages: "op 12 matmul".
  std::string name;
};

/// Pages of one arena, in bytes.
struct PageUse {
  Arena arena = Arena::Persistent;
  Bytes with_buffers;
  Bytes written;
};

class Guard {
 public:
  /// Paints all arenas. Called by the rank itself, before its first op.
  /// Errors: ExitCode::RecipeRejected if the plan has no bytes for red zones: it was not made with `[run] guard`.
  static auto Create(const Plan& plan, RankDevice& device) -> ErrorOr<std::unique_ptr<Guard>>;

  static auto TouchesOf(const Plan& plan, const Op& op, size_t index) -> OpTouches;

  /// Lives begin. Errors: ExitCode::InternalFault, as of the three below.
  auto BeforeOp(const OpTouches& op) -> Status;
  auto AfterOp(const OpTouches& op) -> Status;
  auto Release(BufferId buffer) -> Status;
  auto EndSection() -> Status;

  /// One row for each arena, in enumerator order. Errors: those of reading the device.
  auto MeasurePages() -> ErrorOr<std::vector<PageUse>>;

 private:
  /// What lies in one granule of an arena, of which red zones and buffers begin at the first byte.
  static constexpr int64_t GranuleBytes = 256;
  struct ArenaState {
    std::byte* base = nullptr;
    int64_t bytes = 0;
    /// By granule: the buffer whose life was the last there, or whose is now; invalid: none.
    std::vector<BufferId> tenants;
    /// By granule: its tenant lives.
    std::vector<bool> alive;
    /// By page.
    std::vector<bool> holds_buffers;
    std::vector<bool> written;
  };
  struct BufferState {
    uint64_t paint = 0;
    bool alive = false;
    /// The last op that touched it.
    const OpTouches* toucher = nullptr;
  };

  /// The first byte that is not as it was painted.
  struct Change {
    /// In the arena.
    int64_t offset = 0;
    std::byte holds{};
  };

  Guard(const Plan& plan, RankDevice& device) : plan_(plan), device_(device) {}

  auto Lay() -> Status;
  /// An interval of an arena's bytes.
  auto Paint(const ArenaState& arena, const Interval& where, uint64_t paint) -> Status;
  auto PaintPiece(const ArenaState& arena, const Interval& where, uint64_t paint) -> Status;
  auto FindChange(const ArenaState& arena, const Interval& where, uint64_t paint) -> ErrorOr<std::optional<Change>>;
  /// Takes bytes of an arena from an offset on.
  using ReadFunction = std::function<void(int64_t offset, std::span<const std::byte> bytes)>;
  /// Reads an interval of an arena in pieces, and calls `function` with each.
  auto ForEachRead(const ArenaState& arena, const Interval& where, const ReadFunction& function) -> Status;
  auto StateOf(Arena arena) -> ArenaState& { return arenas_[static_cast<size_t>(arena)]; }
  auto StateOf(BufferId id) -> BufferState& { return buffers_[static_cast<size_t>(id.index)]; }
  /// From the first byte of the zone before a buffer to the end of the last granule of the zone after it.
  auto RegionOf(BufferId id) const -> Interval;
  auto PaintOf(BufferId tenant) const -> uint64_t;
  auto Bear(BufferId id) -> Status;
  auto CheckZones(BufferId id, std::string_view when) -> Status;
  auto CheckDead(Arena arena, int64_t begin_granule, int64_t end_granule) -> Status;
  auto MarkWrittenPages(BufferId id, std::vector<bool>& written) -> Status;
  auto Name(BufferId id) const -> std::string;

  const Plan& plan_;
  RankDevice& device_;
  HostScratch scratch_;
  std::array<ArenaState, NumArenas> arenas_;
  std::vector<BufferState> buffers_;
};

}  // namespace shardc
