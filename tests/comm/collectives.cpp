// Every collective on every group of several meshes, against serial sums in rank order: equal to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "compiler/base/bfloat16.h"
#include "tests/comm/world.h"

namespace shardc {
namespace {

using Floats = std::vector<float>;

/// What `rank` contributes in a round; known to all, so that each rank can work out what it must get.
template <class T>
auto Contribution(int64_t rank, uint64_t round, int64_t count) -> std::vector<T> {
  std::mt19937_64 random(round * 1000 + static_cast<uint64_t>(rank));
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) {
    // Of very different sizes, so that the order of a sum shows.
    const uint64_t bits = random();
    const double mantissa = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-63;
    const auto exponent = static_cast<int>(bits % 27) - 6;
    value = static_cast<T>(std::ldexp(mantissa, exponent));
  }
  return values;
}

template <class T>
auto Combined(const std::vector<int64_t>& ranks, uint64_t round, int64_t count, ReduceOp op) -> std::vector<T> {
  std::vector<T> all = Contribution<T>(ranks[0], round, count);
  for (size_t k = 1; k < ranks.size(); ++k) {
    const std::vector<T> next = Contribution<T>(ranks[k], round, count);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] = op == ReduceOp::Sum   ? all[i] + next[i]
               : op == ReduceOp::Min ? std::min(all[i], next[i])
                                     : std::max(all[i], next[i]);
    }
  }
  return all;
}

/// "" if equal, else where not.
template <class T>
auto Difference(const char* what, AxisSet axes, const T* got, const std::vector<T>& want) -> std::string {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::memcmp(got + i, &want[i], sizeof(T)) != 0) {
      return fmt::format("{} over {}: element {} of {} is {}, not {}", what, ToText(axes), i, want.size(), got[i],
                         want[i]);
    }
  }
  return "";
}

#define RETURN_IF_TEXT(expression)                        \
  if (std::string text_ = (expression); !text_.empty()) { \
    return text_;                                         \
  }
#define RETURN_IF_FAILED(expression)             \
  if (Status status_ = (expression); !status_) { \
    return status_.error().message;              \
  }

auto TryAllGather(const World& world, HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count,
                  bool in_place) -> std::string {
  const int64_t rank = comm.rank();
  const auto ranks = comm.mesh().Group(axes, rank);
  const int64_t bytes = count * 4;
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto size = static_cast<int64_t>(ranks.size());
  // Peers read the shard at the offset that they have it at themselves (all_gather-c5). In place, which no plan may ask
  // for, the full vectors lie at different offsets, such that every shard is at 256 KiB.
  const int64_t shard_at = 256 << 10;
  const CommSpan shard = world.SpanOf(rank, shard_at, bytes);
  CommSpan full = world.SpanOf(rank, in_place ? shard_at - index * bytes : shard_at * 2, bytes * size);
  const Floats mine = Contribution<float>(rank, round, count);
  std::memcpy(shard.data, mine.data(), static_cast<size_t>(bytes));
  RETURN_IF_FAILED(comm.AllGather(axes, shard, full));
  // The peers are through: what they read may change at once.
  if (!in_place) {
    std::memset(shard.data, 0xff, static_cast<size_t>(bytes));
  }
  Floats want;
  for (const int64_t peer : ranks) {
    const Floats piece = Contribution<float>(peer, round, count);
    want.insert(want.end(), piece.begin(), piece.end());
  }
  return Difference("all_gather", axes, reinterpret_cast<float*>(full.data), want);
}

template <class T>
auto TryReduceScatter(const World& world, HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count,
                      bool accumulate, bool in_place, DType dtype) -> std::string {
  const int64_t rank = comm.rank();
  const auto ranks = comm.mesh().Group(axes, rank);
  const auto size = static_cast<int64_t>(ranks.size());
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto bytes = count * static_cast<int64_t>(sizeof(T));
  const CommSpan full = world.SpanOf(rank, 0, bytes * size);
  const CommSpan shard = world.SpanOf(rank, in_place ? index * bytes : 512 << 10, bytes);
  const auto mine = Contribution<T>(rank, round, count * size);
  std::memcpy(full.data, mine.data(), static_cast<size_t>(full.bytes));
  const auto before = Contribution<T>(rank, round + 77, count);
  if (!in_place) {
    std::memcpy(shard.data, before.data(), static_cast<size_t>(bytes));
  }
  RETURN_IF_FAILED(comm.ReduceScatter(axes, full, shard, {dtype, dtype}, accumulate));
  const auto sum = Combined<T>(ranks, round, count * size, ReduceOp::Sum);
  std::vector<T> want(sum.begin() + index * count, sum.begin() + (index + 1) * count);
  for (size_t i = 0; accumulate && i < want.size(); ++i) {
    want[i] = before[i] + want[i];
  }
  RETURN_IF_TEXT(Difference("reduce_scatter", axes, reinterpret_cast<T*>(shard.data), want));
  // The peers are through: this must reach nobody.
  std::memset(full.data, 0xff, static_cast<size_t>(full.bytes));
  return "";
}

/// bf16 numbers, as f32.
auto ContributionInBFloat16(int64_t rank, uint64_t round, int64_t count) -> Floats {
  Floats values = Contribution<float>(rank, round, count);
  for (float& value : values) {
    BFloat16 rounded{};
    Store(rounded, value);
    value = Load(rounded);
  }
  return values;
}

/// bf16 is summed in f32, what it adds to included, and rounded once, if the sum is bf16 too.
template <class Sum>
auto TryReduceScatterOfBFloat16(const World& world, HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count,
                                bool accumulate, bool in_place) -> std::string {
  const int64_t rank = comm.rank();
  const auto ranks = comm.mesh().Group(axes, rank);
  const auto size = static_cast<int64_t>(ranks.size());
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto slice_bytes = count * static_cast<int64_t>(sizeof(BFloat16));
  const CommSpan full = world.SpanOf(rank, 0, slice_bytes * size);
  const CommSpan shard =
      world.SpanOf(rank, in_place ? index * slice_bytes : 512 << 10, count * static_cast<int64_t>(sizeof(Sum)));
  const auto before = ContributionInBFloat16(rank, round + 77, count);
  for (size_t i = 0; !in_place && i < before.size(); ++i) {
    Store(reinterpret_cast<Sum*>(shard.data)[i], before[i]);
  }
  const auto mine = ContributionInBFloat16(rank, round, count * size);
  for (size_t i = 0; i < mine.size(); ++i) {
    Store(reinterpret_cast<BFloat16*>(full.data)[i], mine[i]);
  }
  constexpr DType SumType = std::is_same_v<Sum, float> ? DType::F32 : DType::BF16;
  RETURN_IF_FAILED(comm.ReduceScatter(axes, full, shard, {DType::BF16, SumType}, accumulate));
  Floats sum(static_cast<size_t>(count), 0.0F);
  for (const int64_t peer : ranks) {
    const auto theirs = ContributionInBFloat16(peer, round, count * size);
    for (size_t i = 0; i < sum.size(); ++i) {
      sum[i] += theirs[static_cast<size_t>(index * count) + i];
    }
  }
  for (size_t i = 0; i < sum.size(); ++i) {
    Sum want{};
    Store(want, accumulate ? before[i] + sum[i] : sum[i]);
    const Sum got = reinterpret_cast<const Sum*>(shard.data)[i];
    if (std::memcmp(&got, &want, sizeof(Sum)) != 0) {
      return fmt::format("reduce_scatter of bf16 over {}: element {} of {} is {}, not {}", ToText(axes), i, sum.size(),
                         Load(got), Load(want));
    }
  }
  std::memset(full.data, 0xff, static_cast<size_t>(full.bytes));
  return "";
}

template <class T>
auto TryAllReduce(HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count, DType dtype, ReduceOp op)
    -> std::string {
  auto data = Contribution<T>(comm.rank(), round, count);
  RETURN_IF_FAILED(comm.AllReduce(axes, reinterpret_cast<std::byte*>(data.data()), count, dtype, op));
  return Difference("all_reduce", axes, data.data(),
                    Combined<T>(comm.mesh().Group(axes, comm.rank()), round, count, op));
}

/// What the plan's ops sent over `axes` by the counts.
auto TrafficOver(const HostCommunicator& comm, CollectiveKind kind, AxisSet axes) -> Traffic {
  TrafficTable table = comm.traffic();
  return table.At(kind, axes);
}

/// By slices, in a shared arena, and as it is, elsewhere: the same bits, and counts by the formula.
template <class T>
auto TryAllReduceOfPlan(const World& world, HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count,
                        DType dtype) -> std::string {
  const auto ranks = comm.mesh().Group(axes, comm.rank());
  const auto size = static_cast<int64_t>(ranks.size());
  const auto bytes = count * static_cast<int64_t>(sizeof(T));
  const auto want = Combined<T>(ranks, round, count, ReduceOp::Sum);
  for (const bool by_slices : {true, false}) {
    auto mine = Contribution<T>(comm.rank(), round, count);
    CommSpan span = world.SpanOf(comm.rank(), 64 << 10, bytes);
    if (by_slices) {
      std::memcpy(span.data, mine.data(), static_cast<size_t>(bytes));
    } else {
      span = {.data = reinterpret_cast<std::byte*>(mine.data()), .bytes = bytes};
    }
    const Traffic before = TrafficOver(comm, CollectiveKind::AllReduce, axes);
    const Traffic small = comm.small_traffic();
    RETURN_IF_FAILED(comm.AllReduce(axes, span, dtype));
    RETURN_IF_TEXT(Difference(by_slices ? "all_reduce by slices" : "all_reduce as it is", axes,
                              reinterpret_cast<T*>(span.data), want));
    // The peers are through: this must reach nobody.
    std::memset(span.data, 0xff, static_cast<size_t>(bytes));
    const Traffic after = TrafficOver(comm, CollectiveKind::AllReduce, axes);
    int64_t wire = after.wire - before.wire;
    RETURN_IF_FAILED(comm.AllReduce(axes, reinterpret_cast<std::byte*>(&wire), 1, DType::I64, ReduceOp::Sum));
    const int64_t planned = bytes * (size - 1) * (by_slices ? 2 : size);
    if (after.calls != before.calls + 1 || after.payload != before.payload + bytes || wire != planned ||
        comm.small_traffic().calls != small.calls + 1) {
      return fmt::format("all_reduce of {} B over {}, {}: {} calls more, {} B more, {} B on the wire, not {}", bytes,
                         ToText(axes), by_slices, after.calls - before.calls, after.payload - before.payload, wire,
                         planned);
    }
  }
  return "";
}

auto TryBroadcast(HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count) -> std::string {
  auto data = Contribution<double>(comm.rank(), round, count);
  RETURN_IF_FAILED(comm.Broadcast(axes, reinterpret_cast<std::byte*>(data.data()), count * 8));
  return Difference("broadcast", axes, data.data(),
                    Contribution<double>(comm.mesh().Group(axes, comm.rank())[0], round, count));
}

auto TryGatherSmall(HostCommunicator& comm, AxisSet axes, uint64_t round, int64_t count) -> std::string {
  const auto ranks = comm.mesh().Group(axes, comm.rank());
  const auto mine = Contribution<double>(comm.rank(), round, count);
  std::vector<double> all(ranks.size() * static_cast<size_t>(count));
  RETURN_IF_FAILED(comm.GatherSmall(axes, reinterpret_cast<const std::byte*>(mine.data()), count * 8,
                                    reinterpret_cast<std::byte*>(all.data())));
  std::vector<double> want;
  for (const int64_t peer : ranks) {
    const auto piece = Contribution<double>(peer, round, count);
    want.insert(want.end(), piece.begin(), piece.end());
  }
  return Difference("gather_small", axes, all.data(), want);
}

constexpr uint64_t NumKinds = 22;

/// One of the collectives, chosen by `kind`; all ranks choose alike.
auto TryOne(const World& world, HostCommunicator& comm, AxisSet axes, uint64_t kind, uint64_t round, int64_t count)
    -> std::string {
  switch (kind % NumKinds) {
    case 0: return TryAllGather(world, comm, axes, round, count, false);
    case 1: return TryAllGather(world, comm, axes, round, count, true);
    case 2: return TryReduceScatter<float>(world, comm, axes, round, count, false, false, DType::F32);
    case 3: return TryReduceScatter<float>(world, comm, axes, round, count, true, false, DType::F32);
    case 4: return TryReduceScatter<float>(world, comm, axes, round, count, false, true, DType::F32);
    case 5: return TryReduceScatter<double>(world, comm, axes, round, count, true, false, DType::F64);
    case 6: return TryAllReduce<float>(comm, axes, round, count, DType::F32, ReduceOp::Sum);
    case 7: return TryAllReduce<double>(comm, axes, round, count, DType::F64, ReduceOp::Sum);
    case 8: return TryAllReduce<int64_t>(comm, axes, round, count, DType::I64, ReduceOp::Sum);
    case 9: return TryAllReduce<float>(comm, axes, round, count, DType::F32, ReduceOp::Max);
    case 10: return TryAllReduce<int64_t>(comm, axes, round, count, DType::I64, ReduceOp::Min);
    case 11: return TryBroadcast(comm, axes, round, count);
    case 12: return TryGatherSmall(comm, axes, round, count);
    case 13: return TryReduceScatterOfBFloat16<BFloat16>(world, comm, axes, round, count, false, false);
    case 14: return TryReduceScatterOfBFloat16<BFloat16>(world, comm, axes, round, count, true, false);
    case 15: return TryReduceScatterOfBFloat16<BFloat16>(world, comm, axes, round, count, false, true);
    case 16: return TryReduceScatterOfBFloat16<float>(world, comm, axes, round, count, false, false);
    case 17: return TryReduceScatterOfBFloat16<float>(world, comm, axes, round, count, true, false);
    case 18: return TryAllReduceOfPlan<float>(world, comm, axes, round, count, DType::F32);
    case 19: return TryAllReduceOfPlan<double>(world, comm, axes, round, count, DType::F64);
    case 20: return TryAllReduceOfPlan<int64_t>(world, comm, axes, round, count, DType::I64);
    default: {
      RETURN_IF_FAILED(comm.Barrier(axes));
      return "";
    }
  }
}

struct Case {
  HostGroup::Members members;
  Mesh mesh;
};

/// Where dp is not cut, the sets with dp_inner are those without again.
auto NumSets(const Mesh& mesh) -> uint8_t { return mesh.size(Axis::DpInner) > 1 ? NumAxisSets : 1U << NumMeshAxes; }

class Collectives : public testing::TestWithParam<Case> {};

TEST_P(Collectives, EqualSerialSumsInRankOrder) {
  World world(GetParam().mesh, GetParam().members);
  const auto texts = world.Run({}, [&](HostCommunicator& comm) -> std::string {
    uint64_t round = 0;
    for (const int64_t count : {1, 1024, 1500}) {
      for (uint8_t bits = 0; bits < NumSets(comm.mesh()); ++bits) {
        for (uint64_t kind = 0; kind < NumKinds; ++kind) {
          RETURN_IF_TEXT(TryOne(world, comm, AxisSet{bits}, kind, ++round, count));
        }
      }
    }
    return "";
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], "") << "rank " << rank;
  }
}

TEST_P(Collectives, RandomOrderAndUnequalArrival) {
  World world(GetParam().mesh, GetParam().members);
  const auto texts = world.Run({}, [&](HostCommunicator& comm) -> std::string {
    std::mt19937_64 same(5);
    std::mt19937_64 own(static_cast<uint64_t>(comm.rank()));
    for (uint64_t round = 1; round <= 200; ++round) {
      const AxisSet axes{static_cast<uint8_t>(same() % NumSets(comm.mesh()))};
      const uint64_t kind = same();
      const auto count = static_cast<int64_t>(1 + same() % 64);
      if (own() % 20 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(own() % 4000));
      }
      RETURN_IF_TEXT(TryOne(world, comm, axes, kind, round, count));
    }
    return "";
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], "") << "rank " << rank;
  }
}

TEST_P(Collectives, BarrierKeepsRanksTogether) {
  World world(GetParam().mesh, GetParam().members);
  // Where each rank has a core; beyond that each round costs task switches.
  const int64_t rounds = world.num_ranks() <= 2 ? 100'000 : 5'000;
  const auto texts = world.Run({}, [&](HostCommunicator& comm) -> std::string {
    const auto counter = [&](int64_t rank) -> std::atomic<int64_t>& {
      return *reinterpret_cast<std::atomic<int64_t>*>(world.buffer(rank));
    };
    for (int64_t round = 1; round <= rounds; ++round) {
      counter(comm.rank()).store(round, std::memory_order_relaxed);
      RETURN_IF_FAILED(comm.Barrier(AxisSet::All()));
      for (int64_t peer = 0; peer < world.num_ranks(); ++peer) {
        const int64_t seen = counter(peer).load(std::memory_order_relaxed);
        if (seen != round && seen != round + 1) {
          return fmt::format("in round {} rank {} is in {}", round, peer, seen);
        }
      }
    }
    return "";
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], "") << "rank " << rank;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Collectives,
    testing::Values(Case{Threads, {{1, 1, 1}}}, Case{Threads, {{1, 2, 1}}}, Case{Threads, {{1, 3, 1}}},
                    Case{Threads, {{1, 4, 1}}}, Case{Threads, {{1, 2, 2}}}, Case{Threads, {{2, 2, 2}}},
                    Case{Threads, {{1, 4, 2}, 2}}, Case{Threads, {{2, 4, 2}, 2}}, Case{Processes, {{1, 1, 1}}},
                    Case{Processes, {{1, 2, 1}}}, Case{Processes, {{1, 3, 1}}}, Case{Processes, {{1, 4, 1}}},
                    Case{Processes, {{2, 2, 1}}}, Case{Processes, {{1, 2, 2}}}, Case{Processes, {{2, 1, 3}}},
                    Case{Processes, {{1, 4, 1}, 2}}),
    [](const testing::TestParamInfo<Case>& info) {
      const Mesh& mesh = info.param.mesh;
      return fmt::format("{}_{}x{}x{}{}", ToText(info.param.members), mesh.sizes[0], mesh.sizes[1], mesh.sizes[2],
                         mesh.size(Axis::DpInner) == 1 ? "" : fmt::format("_of_{}", mesh.size(Axis::DpInner)));
    });

}  // namespace
}  // namespace shardc
