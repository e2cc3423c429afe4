#include "runtime/memory/arenas.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace shardc {

auto PageSize() -> int64_t {
  static const int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

auto Mapping::Create(int64_t bytes, Kind kind) -> ErrorOr<Mapping> {
  return Map(bytes, (kind == Kind::Shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
}

auto Mapping::OfFile(int64_t bytes, int descriptor, int64_t begin) -> ErrorOr<Mapping> {
  return Map(bytes, MAP_SHARED, descriptor, begin);
}

auto Mapping::Map(int64_t bytes, int sharing, int descriptor, int64_t begin_in_file) -> ErrorOr<Mapping> {
  CHECK(bytes >= 0, "arena of {} bytes", bytes);
  Mapping mapping;
  if (bytes == 0) {
    return mapping;
  }
  const int64_t length = RoundUp(bytes, PageSize());
  // An address range that is large enough to align in, then the mapping itself over the aligned part.
  const size_t reserved_bytes = static_cast<size_t>(length + ArenaAlignment);
  void* reserved = mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  FAIL_IF(reserved == MAP_FAILED, ExitCode::DoesNotFit, "no address space for an arena of {}: {}",
          FormatMemory(Bytes{bytes}), std::strerror(errno));
  auto* begin = static_cast<std::byte*>(reserved);
  const auto address = reinterpret_cast<uintptr_t>(reserved);
  auto* aligned = begin + (RoundUp(static_cast<int64_t>(address), ArenaAlignment) - static_cast<int64_t>(address));
  void* mapped = mmap(aligned, static_cast<size_t>(length), PROT_READ | PROT_WRITE, sharing | MAP_FIXED, descriptor,
                      begin_in_file);
  if (mapped == MAP_FAILED) {
    const int error = errno;
    munmap(reserved, reserved_bytes);
    return Fail(ExitCode::DoesNotFit, "cannot map an arena of {}: {}", FormatMemory(Bytes{bytes}),
                std::strerror(error));
  }
  if ((sharing & MAP_PRIVATE) != 0) {
    // A load takes 0.7 of the processor time then (docs/checkpoint_format.md). A kernel without huge pages refuses.
    madvise(aligned, static_cast<size_t>(length), MADV_HUGEPAGE);
  }
  if (aligned > begin) {
    munmap(begin, static_cast<size_t>(aligned - begin));
  }
  std::byte* end = aligned + length;
  if (end < begin + reserved_bytes) {
    munmap(end, static_cast<size_t>(begin + reserved_bytes - end));
  }
  mapping.base_ = aligned;
  mapping.bytes_ = length;
  return mapping;
}

auto Mapping::operator=(Mapping&& other) noexcept -> Mapping& {
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (base_ != nullptr) {
    munmap(base_, static_cast<size_t>(bytes_));
  }
}

// mincore asks the page table for a private anonymous mapping (a page counts once it was read or written) and the
// shared memory object for a shared one (a page counts once any rank used it). It needs no privilege for memory of our
// own. /proc/self/pagemap and smaps would miss what only a peer touched. A page that was swapped out is not counted.
auto Mapping::Touched() const -> Bytes {
  constexpr int64_t PagesAtOnce = 1 << 14;
  std::vector<unsigned char> present(static_cast<size_t>(PagesAtOnce));
  int64_t count = 0;
  for (int64_t at = 0; at < bytes_; at += PagesAtOnce * PageSize()) {
    const int64_t bytes = std::min(PagesAtOnce * PageSize(), bytes_ - at);
    const int result = mincore(base_ + at, static_cast<size_t>(bytes), present.data());
    CHECK(result == 0, "mincore: {}", std::strerror(errno));
    count += std::count_if(present.begin(), present.begin() + bytes / PageSize(),
                           [](unsigned char page) { return (page & 1U) != 0; });
  }
  return Bytes{count * PageSize()};
}

auto SharedArenas::Create(const ArenaSizes& sizes, Interval ranks, int64_t per_host, ArenaFile file)
    -> ErrorOr<SharedArenas> {
  SharedArenas arenas;
  arenas.sizes_ = sizes;
  arenas.ranks_ = ranks;
  arenas.per_host_ = static_cast<size_t>(per_host == 0 ? ranks.size() : per_host);
  arenas.mappings_.resize(static_cast<size_t>(ranks.size()));
  for (size_t local_rank = 0; local_rank < arenas.mappings_.size(); ++local_rank) {
    for (size_t i = 0; i < NumArenas; ++i) {
      const auto arena = static_cast<Arena>(i);
      if (IsShared(arena) && arenas.OwnerOf(arena, local_rank) == local_rank) {
        ASSIGN_OR_RETURN(auto mapping, file.descriptor < 0 ? Mapping::Create(sizes[i], Mapping::Kind::Shared)
                                                           : Mapping::OfFile(sizes[i], file.descriptor, file.begin));
        file.begin += RoundUp(sizes[i], PageSize());
        arenas.mappings_[local_rank][i] = std::move(mapping);
      }
    }
  }
  return arenas;
}

auto SharedArenas::BytesInFile(const ArenaSizes& sizes, Interval ranks, int64_t per_host) -> int64_t {
  int64_t bytes = 0;
  for (size_t i = 0; i < NumArenas; ++i) {
    const auto arena = static_cast<Arena>(i);
    const int64_t count = arena == Arena::Gathered ? ranks.size() / per_host : ranks.size();
    bytes += IsShared(arena) ? RoundUp(sizes[i], PageSize()) * count : 0;
  }
  return bytes;
}

auto SharedArenas::mapping(int64_t rank, Arena arena) const -> const Mapping& {
  CHECK(rank >= ranks_.begin && rank < ranks_.end, "rank {} of {} to {}", rank, ranks_.begin, ranks_.end);
  return mappings_[OwnerOf(arena, static_cast<size_t>(rank - ranks_.begin))][static_cast<size_t>(arena)];
}

auto SharedArenas::Peers() const -> PeerTable {
  PeerTable peers(mappings_.size());
  for (int64_t rank = ranks_.begin; rank < ranks_.end; ++rank) {
    for (size_t i = 0; i < NumArenas; ++i) {
      peers[static_cast<size_t>(rank - ranks_.begin)][i] = mapping(rank, static_cast<Arena>(i)).base();
    }
  }
  return peers;
}

auto ArenaSet::Create(const SharedArenas& shared, int64_t rank) -> ErrorOr<ArenaSet> {
  CHECK(rank >= shared.ranks().begin && rank < shared.ranks().end, "rank {} of {} to {}", rank, shared.ranks().begin,
        shared.ranks().end);
  ArenaSet set;
  set.rank_ = rank;
  set.shared_ = &shared;
  for (size_t i = 0; i < NumArenas; ++i) {
    if (!IsShared(static_cast<Arena>(i))) {
      ASSIGN_OR_RETURN(set.own_[i], Mapping::Create(shared.sizes()[i], Mapping::Kind::Private));
    }
  }
  return set;
}

auto ArenaSet::MeasureUse() const -> std::vector<ArenaUse> {
  std::vector<ArenaUse> uses;
  for (size_t i = 0; i < NumArenas; ++i) {
    const auto arena = static_cast<Arena>(i);
    uses.push_back({.arena = arena, .planned = planned(arena), .touched = MappingOf(arena).Touched()});
  }
  return uses;
}

}  // namespace shardc
