// Every collective on every group of several meshes, against serial sums in rank order: equal to the last bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "compiler/base/bfloat16.h"
#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/layered_communicator.h"
#include "tests/control/world.h"
#include "tests/support/no_queue.h"

namespace shardc {
namespace {

using Floats = std::vector<float>;

constexpr Arena SharedArena = Arena::SharedTransient;

/// What one rank of a World has.
struct Rank {
  Rank(World& world, const std::shared_ptr<HostMember>& member)
      : world(world),
        member(*member),
        control(member),
        comm(std::make_unique<CpuEngine>(member, PeersIn(world)), world.block().mesh(), Comm::Shm) {}
  /// As SharedArenas::Peers.
  static auto PeersIn(const World& world) -> PeerTable {
    PeerTable peers(static_cast<size_t>(world.num_ranks()));
    for (size_t i = 0; i < peers.size(); ++i) {
      peers[i][static_cast<size_t>(SharedArena)] = world.buffer(world.ranks().begin + static_cast<int64_t>(i));
    }
    return peers;
  }

  auto number() const -> int64_t { return member.rank(); }
  auto mesh() const -> const Mesh& { return control.mesh(); }
  auto SpanOf(int64_t offset, int64_t bytes) const -> CommSpan {
    return {.data = world.buffer(number()) + offset, .bytes = bytes, .arena = SharedArena, .offset = offset};
  }

  const World& world;
  HostMember& member;
  HostControl control;
  LayeredCommunicator comm;
  NoQueue queue;
};

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

/// The sum of what the ranks contribute, in their order.
template <class T>
auto SumOf(const std::vector<int64_t>& ranks, uint64_t round, int64_t count) -> std::vector<T> {
  std::vector<T> all = Contribution<T>(ranks[0], round, count);
  for (size_t k = 1; k < ranks.size(); ++k) {
    const std::vector<T> next = Contribution<T>(ranks[k], round, count);
    for (size_t i = 0; i < all.size(); ++i) {
      all[i] += next[i];
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

auto TryAllGather(Rank& own, AxisSet axes, uint64_t round, int64_t count, bool in_place) -> std::string {
  const int64_t rank = own.number();
  const auto ranks = own.mesh().Group(axes, rank);
  const int64_t bytes = count * 4;
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto size = static_cast<int64_t>(ranks.size());
  // Peers read the shard at the offset that they have it at themselves (all_gather-c5). In place, which no plan may ask
  // for, the full vectors lie at different offsets, such that every shard is at 256 KiB.
  const int64_t shard_at = 256 << 10;
  const CommSpan shard = own.SpanOf(shard_at, bytes);
  CommSpan full = own.SpanOf(in_place ? shard_at - index * bytes : shard_at * 2, bytes * size);
  const Floats mine = Contribution<float>(rank, round, count);
  std::memcpy(shard.data, mine.data(), static_cast<size_t>(bytes));
  RETURN_IF_FAILED(own.comm.AllGather(own.queue, axes, shard, full, {}));
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
auto TryReduceScatter(Rank& own, AxisSet axes, uint64_t round, int64_t count, bool accumulate, bool in_place,
                      DType dtype) -> std::string {
  const int64_t rank = own.number();
  const auto ranks = own.mesh().Group(axes, rank);
  const auto size = static_cast<int64_t>(ranks.size());
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto bytes = count * static_cast<int64_t>(sizeof(T));
  const CommSpan full = own.SpanOf(0, bytes * size);
  const CommSpan shard = own.SpanOf(in_place ? index * bytes : 512 << 10, bytes);
  const auto mine = Contribution<T>(rank, round, count * size);
  std::memcpy(full.data, mine.data(), static_cast<size_t>(full.bytes));
  const auto before = Contribution<T>(rank, round + 77, count);
  if (!in_place) {
    std::memcpy(shard.data, before.data(), static_cast<size_t>(bytes));
  }
  RETURN_IF_FAILED(own.comm.ReduceScatter(own.queue, axes, full, shard, {}, {dtype, dtype}, accumulate));
  const auto sum = SumOf<T>(ranks, round, count * size);
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
auto TryReduceScatterOfBFloat16(Rank& own, AxisSet axes, uint64_t round, int64_t count, bool accumulate, bool in_place)
    -> std::string {
  const int64_t rank = own.number();
  const auto ranks = own.mesh().Group(axes, rank);
  const auto size = static_cast<int64_t>(ranks.size());
  const int64_t index = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  const auto slice_bytes = count * static_cast<int64_t>(sizeof(BFloat16));
  const CommSpan full = own.SpanOf(0, slice_bytes * size);
  const CommSpan shard =
      own.SpanOf(in_place ? index * slice_bytes : 512 << 10, count * static_cast<int64_t>(sizeof(Sum)));
  const auto before = ContributionInBFloat16(rank, round + 77, count);
  for (size_t i = 0; !in_place && i < before.size(); ++i) {
    Store(reinterpret_cast<Sum*>(shard.data)[i], before[i]);
  }
  const auto mine = ContributionInBFloat16(rank, round, count * size);
  for (size_t i = 0; i < mine.size(); ++i) {
    Store(reinterpret_cast<BFloat16*>(full.data)[i], mine[i]);
  }
  constexpr DType SumType = std::is_same_v<Sum, float> ? DType::F32 : DType::BF16;
  RETURN_IF_FAILED(own.comm.ReduceScatter(own.queue, axes, full, shard, {}, {DType::BF16, SumType}, accumulate));
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
auto TrySum(Rank& own, AxisSet axes, uint64_t round, int64_t count, DType dtype) -> std::string {
  auto data = Contribution<T>(own.number(), round, count);
  RETURN_IF_FAILED(own.control.Sum(axes, reinterpret_cast<std::byte*>(data.data()), count, dtype));
  return Difference("sum", axes, data.data(), SumOf<T>(own.mesh().Group(axes, own.number()), round, count));
}

/// What the plan's ops sent over `axes` by the counts.
auto TrafficOver(const Communicator& comm, CollectiveKind kind, AxisSet axes) -> Traffic {
  TrafficTable table = comm.traffic();
  return table.At(kind, axes);
}

/// By slices, in a shared arena, and as it is, elsewhere: the same bits, and counts by the formula.
template <class T>
auto TryAllReduceOfPlan(Rank& own, AxisSet axes, uint64_t round, int64_t count, DType dtype) -> std::string {
  const auto ranks = own.mesh().Group(axes, own.number());
  const auto size = static_cast<int64_t>(ranks.size());
  const auto bytes = count * static_cast<int64_t>(sizeof(T));
  const auto want = SumOf<T>(ranks, round, count);
  for (const bool by_slices : {true, false}) {
    auto mine = Contribution<T>(own.number(), round, count);
    CommSpan span = own.SpanOf(64 << 10, bytes);
    if (by_slices) {
      std::memcpy(span.data, mine.data(), static_cast<size_t>(bytes));
    } else {
      span = {.data = reinterpret_cast<std::byte*>(mine.data()), .bytes = bytes};
    }
    const Traffic before = TrafficOver(own.comm, CollectiveKind::AllReduce, axes);
    const Traffic beside = own.control.traffic();
    RETURN_IF_FAILED(own.comm.AllReduce(own.queue, axes, span, {}, dtype));
    RETURN_IF_TEXT(Difference(by_slices ? "all_reduce by slices" : "all_reduce as it is", axes,
                              reinterpret_cast<T*>(span.data), want));
    // The peers are through: this must reach nobody.
    std::memset(span.data, 0xff, static_cast<size_t>(bytes));
    const Traffic after = TrafficOver(own.comm, CollectiveKind::AllReduce, axes);
    int64_t wire = after.wire - before.wire;
    RETURN_IF_FAILED(own.control.Sum(axes, reinterpret_cast<std::byte*>(&wire), 1, DType::I64));
    const int64_t planned = bytes * (size - 1) * (by_slices ? 2 : size);
    if (after.calls != before.calls + 1 || after.payload != before.payload + bytes || wire != planned ||
        own.control.traffic().calls != beside.calls + 1) {
      return fmt::format("all_reduce of {} B over {}, {}: {} calls more, {} B more, {} B on the wire, not {}", bytes,
                         ToText(axes), by_slices, after.calls - before.calls, after.payload - before.payload, wire,
                         planned);
    }
  }
  return "";
}

auto TryBroadcast(Rank& own, AxisSet axes, uint64_t round, int64_t count) -> std::string {
  auto data = Contribution<double>(own.number(), round, count);
  RETURN_IF_FAILED(own.control.Broadcast(axes, reinterpret_cast<std::byte*>(data.data()), count * 8));
  return Difference("broadcast", axes, data.data(),
                    Contribution<double>(own.mesh().Group(axes, own.number())[0], round, count));
}

/// As an agreement, or as the plan's op `control` gathers.
auto TryGather(Rank& own, AxisSet axes, uint64_t round, int64_t count, bool of_plan) -> std::string {
  const auto ranks = own.mesh().Group(axes, own.number());
  const auto mine = Contribution<double>(own.number(), round, count);
  std::vector<double> all(ranks.size() * static_cast<size_t>(count));
  const auto* from = reinterpret_cast<const std::byte*>(mine.data());
  auto* to = reinterpret_cast<std::byte*>(all.data());
  const Traffic before = TrafficOver(own.comm, CollectiveKind::Agree, axes);
  const Traffic beside = own.control.traffic();
  RETURN_IF_FAILED(of_plan ? own.comm.Exchange(own.queue, axes, from, count * 8, to)
                           : own.control.Gather(axes, from, count * 8, to));
  Traffic expected = of_plan ? before : beside;
  expected.Add({.calls = 1, .payload = count * 8, .wire = count * 8 * (std::ssize(ranks) - 1)});
  const Traffic counted = of_plan ? TrafficOver(own.comm, CollectiveKind::Agree, axes) : own.control.traffic();
  if (counted != expected || (of_plan && own.control.traffic() != beside)) {
    return fmt::format("gather over {}: {} B on the wire, not {}", ToText(axes), counted.wire, expected.wire);
  }
  std::vector<double> want;
  for (const int64_t peer : ranks) {
    const auto piece = Contribution<double>(peer, round, count);
    want.insert(want.end(), piece.begin(), piece.end());
  }
  return Difference("gather", axes, all.data(), want);
}

constexpr uint64_t NumKinds = 20;

/// One of the collectives, chosen by `kind`; all ranks choose alike.
auto TryOne(Rank& own, AxisSet axes, uint64_t kind, uint64_t round, int64_t count) -> std::string {
  switch (kind % NumKinds) {
    case 0: return TryAllGather(own, axes, round, count, false);
    case 1: return TryAllGather(own, axes, round, count, true);
    case 2: return TryReduceScatter<float>(own, axes, round, count, false, false, DType::F32);
    case 3: return TryReduceScatter<float>(own, axes, round, count, true, false, DType::F32);
    case 4: return TryReduceScatter<float>(own, axes, round, count, false, true, DType::F32);
    case 5: return TryReduceScatter<double>(own, axes, round, count, true, false, DType::F64);
    case 6: return TrySum<float>(own, axes, round, count, DType::F32);
    case 7: return TrySum<double>(own, axes, round, count, DType::F64);
    case 8: return TrySum<int64_t>(own, axes, round, count, DType::I64);
    case 9: return TryBroadcast(own, axes, round, count);
    case 10: return TryGather(own, axes, round, count, false);
    case 11: return TryGather(own, axes, round, count, true);
    case 12: return TryReduceScatterOfBFloat16<BFloat16>(own, axes, round, count, false, false);
    case 13: return TryReduceScatterOfBFloat16<BFloat16>(own, axes, round, count, true, false);
    case 14: return TryReduceScatterOfBFloat16<BFloat16>(own, axes, round, count, false, true);
    case 15: return TryReduceScatterOfBFloat16<float>(own, axes, round, count, false, false);
    case 16: return TryReduceScatterOfBFloat16<float>(own, axes, round, count, true, false);
    case 17: return TryAllReduceOfPlan<float>(own, axes, round, count, DType::F32);
    case 18: return TryAllReduceOfPlan<double>(own, axes, round, count, DType::F64);
    case 19: return TryAllReduceOfPlan<int64_t>(own, axes, round, count, DType::I64);
    default: return "no such collective";
  }
}

struct Case {
  ControlBlock::Members members;
  Mesh mesh;
  int64_t host = 0;
};

/// The sets whose groups lie within hosts. Where dp is not cut, those with dp_inner are those without again.
auto SetsOf(const Mesh& mesh) -> std::vector<AxisSet> {
  const size_t num_sets = mesh.size(Axis::DpInner) > 1 ? NumAxisSets : size_t{1} << NumMeshAxes;
  std::vector<AxisSet> sets;
  for (size_t bits = 0; bits < num_sets; ++bits) {
    if (const AxisSet axes{static_cast<uint8_t>(bits)}; mesh.HostsOf(axes) == 1) {
      sets.push_back(axes);
    }
  }
  return sets;
}

class Collectives : public testing::TestWithParam<Case> {};

TEST_P(Collectives, EqualSerialSumsInRankOrder) {
  World world(GetParam().mesh, GetParam().members, GetParam().host);
  const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    Rank own(world, member);
    uint64_t round = 0;
    for (const int64_t count : {1, 1024, 1500}) {
      for (const AxisSet axes : SetsOf(own.mesh())) {
        for (uint64_t kind = 0; kind < NumKinds; ++kind) {
          RETURN_IF_TEXT(TryOne(own, axes, kind, ++round, count));
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
  World world(GetParam().mesh, GetParam().members, GetParam().host);
  const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    Rank own(world, member);
    std::mt19937_64 same(5);
    std::mt19937_64 delays(static_cast<uint64_t>(own.number()));
    const std::vector<AxisSet> sets = SetsOf(own.mesh());
    for (uint64_t round = 1; round <= 200; ++round) {
      const AxisSet axes = sets[same() % sets.size()];
      const uint64_t kind = same();
      const auto count = static_cast<int64_t>(1 + same() % 64);
      if (delays() % 20 == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(delays() % 4000));
      }
      RETURN_IF_TEXT(TryOne(own, axes, kind, round, count));
    }
    return "";
  });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    EXPECT_EQ(texts[rank], "") << "rank " << rank;
  }
}

TEST_P(Collectives, BarrierKeepsRanksTogether) {
  World world(GetParam().mesh, GetParam().members, GetParam().host);
  // Where each rank has a core; beyond that each round costs task switches.
  const int64_t rounds = world.num_ranks() <= 2 ? 100'000 : 5'000;
  const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    Rank own(world, member);
    const auto counter = [&](int64_t rank) -> std::atomic<int64_t>& {
      return *reinterpret_cast<std::atomic<int64_t>*>(world.buffer(rank));
    };
    // Of all ranks of the host.
    const AxisSet axes = SetsOf(own.mesh()).back();
    for (int64_t round = 1; round <= rounds; ++round) {
      counter(own.number()).store(round, std::memory_order_relaxed);
      RETURN_IF_FAILED(own.control.Barrier(axes));
      for (int64_t peer = world.ranks().begin; peer < world.ranks().end; ++peer) {
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

/// Case by case, as "processes_2x4x2_of_2_host_1_of_2".
auto NameOf(const testing::TestParamInfo<Case>& info) -> std::string {
  const Mesh& mesh = info.param.mesh;
  return fmt::format("{}_{}x{}x{}{}{}", ToText(info.param.members), mesh.sizes[0], mesh.sizes[1], mesh.sizes[2],
                     mesh.size(Axis::DpInner) == 1 ? "" : fmt::format("_of_{}", mesh.size(Axis::DpInner)),
                     mesh.hosts == 1 ? "" : fmt::format("_host_{}_of_{}", info.param.host, mesh.hosts));
}

INSTANTIATE_TEST_SUITE_P(Meshes, Collectives,
                         testing::Values(Case{Threads, {{1, 1, 1}}}, Case{Threads, {{1, 2, 1}}},
                                         Case{Threads, {{1, 3, 1}}}, Case{Threads, {{1, 4, 1}}},
                                         Case{Threads, {{1, 2, 2}}}, Case{Threads, {{2, 2, 2}}},
                                         Case{Threads, {{1, 4, 2}, 2}}, Case{Threads, {{2, 4, 2}, 2}},
                                         Case{Processes, {{1, 1, 1}}}, Case{Processes, {{1, 2, 1}}},
                                         Case{Processes, {{1, 3, 1}}}, Case{Processes, {{1, 4, 1}}},
                                         Case{Processes, {{2, 2, 1}}}, Case{Processes, {{1, 2, 2}}},
                                         Case{Processes, {{2, 1, 3}}}, Case{Processes, {{1, 4, 1}, 2}}),
                         NameOf);

// The ranks of one host among themselves: theirs are not the first numbers, and some groups have ranks elsewhere.
INSTANTIATE_TEST_SUITE_P(Hosts, Collectives,
                         testing::Values(Case{Threads, {{2, 2, 2}, 1, 2}, 1}, Case{Threads, {{1, 4, 2}, 2, 2}, 1},
                                         Case{Processes, {{2, 2, 1}, 1, 2}, 0}, Case{Processes, {{3, 1, 2}, 1, 3}, 2}),
                         NameOf);

}  // namespace
}  // namespace shardc
