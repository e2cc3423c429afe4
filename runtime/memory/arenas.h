// The memory of a run: one mapping an arena and rank, made before the first op and never grown.
//
// Shared arenas are MAP_SHARED | MAP_ANONYMOUS mappings that the launcher makes before it forks the ranks, so every
// rank reaches every peer's copy at the same address and nothing is left in /dev/shm, whatever dies. Private arenas are
// made by the rank itself. No page is touched here: a page exists from the first op that uses it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"
#include "compiler/mesh/mesh.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Bytes of each arena of one rank, as Plan::arena_bytes.
using ArenaSizes = std::array<int64_t, NumArenas>;

/// Base of each arena of each rank; null if an arena is empty, or of one rank alone.
using PeerTable = std::vector<std::array<std::byte*, NumArenas>>;

constexpr auto IsShared(Arena arena) -> bool {
  return arena == Arena::SharedPersistent || arena == Arena::SharedTransient || arena == Arena::Gathered;
}

/// Bytes of a page of memory on this machine.
auto PageSize() -> int64_t;

/// Arenas start at multiples of this, so that huge pages fit. Those of one rank ask for them; shared ones get them
/// where the host is set to give them.
constexpr int64_t ArenaAlignment = int64_t{2} << 20;

/// One mapping: anonymous, or of a file that has no name.
class Mapping {
 public:
  enum class Kind : uint8_t { Private, Shared };

  /// Errors: ExitCode::DoesNotFit where the kernel refuses.
  static auto Create(int64_t bytes, Kind kind) -> ErrorOr<Mapping>;
  /// Of the file from byte `begin` on, a multiple of the page size; shared with whoever maps it.
  static auto OfFile(int64_t bytes, int descriptor, int64_t begin) -> ErrorOr<Mapping>;
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  auto operator=(Mapping&& other) noexcept -> Mapping&;
  ~Mapping();

  /// Null for a mapping of 0 bytes.
  auto base() const -> std::byte* { return base_; }
  /// Bytes of the pages that exist.
  auto Touched() const -> Bytes;

 private:
  static auto Map(int64_t bytes, int sharing, int descriptor, int64_t begin_in_file) -> ErrorOr<Mapping>;

  std::byte* base_ = nullptr;
  /// A multiple of the page size.
  int64_t bytes_ = 0;
};

/// Memory of a file, from byte `begin` on, for ranks that are not forked from one process; -1: of no file.
struct ArenaFile {
  int descriptor = -1;
  int64_t begin = 0;
};

/// The shared arenas of all ranks of this host; of Arena::Gathered there is one for all. Made once, before the ranks
/// are forked or their threads started.
class SharedArenas {
 public:
  /// `ranks`: those that share memory; `per_host` of them, in turn, have one gathered arena: 0: all.
  static auto Create(const ArenaSizes& sizes, Interval ranks, int64_t per_host = 0, ArenaFile file = {})
      -> ErrorOr<SharedArenas>;
  /// What the arenas take of a file.
  static auto BytesInFile(const ArenaSizes& sizes, Interval ranks, int64_t per_host) -> int64_t;
  auto mapping(int64_t rank, Arena arena) const -> const Mapping&;
  auto sizes() const -> const ArenaSizes& { return sizes_; }
  auto ranks() const -> Interval { return ranks_; }
  /// Where the ranks of this host find the shared arenas of each other, first rank first.
  auto Peers() const -> PeerTable;

 private:
  /// Whose mapping of a shared arena a rank uses as its own. Both are counted from the first rank.
  auto OwnerOf(Arena arena, size_t local_rank) const -> size_t {
    return arena == Arena::Gathered ? local_rank / per_host_ * per_host_ : local_rank;
  }

  ArenaSizes sizes_{};
  Interval ranks_;
  size_t per_host_ = 1;
  /// First rank first.
  std::vector<std::array<Mapping, NumArenas>> mappings_;
};

struct ArenaUse {
  Arena arena = Arena::Persistent;
  Bytes planned;
  /// Whole pages that were read or written so far.
  Bytes touched;
};

/// All arenas of one rank.
class ArenaSet {
 public:
  /// Requires: `shared` outlives the result; called by the rank itself (after the fork).
  static auto Create(const SharedArenas& shared, int64_t rank) -> ErrorOr<ArenaSet>;

  auto Base(Arena arena) const -> std::byte* { return MappingOf(arena).base(); }
  auto planned(Arena arena) const -> Bytes { return Bytes{shared_->sizes()[static_cast<size_t>(arena)]}; }
  /// Planned bytes against pages touched, one row for each arena, in enumerator order.
  auto MeasureUse() const -> std::vector<ArenaUse>;

 private:
  auto MappingOf(Arena arena) const -> const Mapping& {
    return IsShared(arena) ? shared_->mapping(rank_, arena) : own_[static_cast<size_t>(arena)];
  }

  int64_t rank_ = 0;
  const SharedArenas* shared_ = nullptr;
  /// Those that are not shared.
  std::array<Mapping, NumArenas> own_;
};

}  // namespace shardc
