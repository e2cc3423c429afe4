// The calls that each collective makes of an engine, and how it ends if one of these calls fails: the rank has the
// engine's error, and its peers name the rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/layered_communicator.h"
#include "tests/control/world.h"
#include "tests/support/no_queue.h"

namespace shardc {
namespace {

using testing::StartsWith;

constexpr Arena PeersArena = Arena::SharedTransient;

/// The CPU's engine with members on other hosts that have what this rank has. It fails at one of its calls.
class FailingEngine final : public CpuEngine {
 public:
  FailingEngine(std::shared_ptr<HostMember> member, PeerTable peers, int64_t members, int64_t fails_at)
      : CpuEngine(std::move(member), std::move(peers)), members_(members), fails_at_(fails_at) {}

  auto Meet(Queue& queue, const Group& group) -> Status override {
    return Next("meet", [&] { return CpuEngine::Meet(queue, group); });
  }
  auto Copy(Queue& queue, std::byte* to, const std::byte* from, int64_t bytes) -> Status override {
    return Next("copy", [&] { return CpuEngine::Copy(queue, to, from, bytes); });
  }
  auto CopyRows(Queue& queue, std::byte* to, int64_t stride, const std::byte* from, int64_t bytes, int64_t rows)
      -> Status override {
    return Next("copy", [&] { return CpuEngine::CopyRows(queue, to, stride, from, bytes, rows); });
  }
  auto Clear(Queue& queue, std::byte* to, int64_t bytes) -> Status override {
    return Next("clear", [&] { return CpuEngine::Clear(queue, to, bytes); });
  }
  auto Fold(Queue& queue, const std::vector<const std::byte*>& terms, size_t per_host, std::byte* out,
            int64_t num_elements, ReduceTypes types, bool accumulate) -> Status override {
    return Next("fold", [&] { return CpuEngine::Fold(queue, terms, per_host, out, num_elements, types, accumulate); });
  }
  auto Sum(Queue& queue, const Group& group, std::byte* data, int64_t num_elements, DType dtype, int64_t per_host)
      -> Status override {
    return Next("sum", [&] { return CpuEngine::Sum(queue, group, data, num_elements, dtype, per_host); });
  }
  auto Gather(Queue&, AxisSet, const std::byte* mine, int64_t bytes, std::byte* all) -> Status override {
    return Next("gather", [&] { return FillSlots(mine, 0, all, bytes); });
  }
  auto AllToAll(Queue&, AxisSet, const std::byte* to_each, int64_t stride, std::byte* from_each, int64_t bytes)
      -> Status override {
    return Next("all_to_all", [&] { return FillSlots(to_each, stride, from_each, bytes); });
  }

  /// Names of the calls so far, each after a blank.
  std::string calls;
  int64_t num_calls = 0;

 private:
  auto Next(const char* name, const std::function<Status()>& call) -> Status {
    CHECK(num_calls <= fails_at_, "{} is called after call {} failed", name, fails_at_);
    calls += fmt::format(" {}", name);
    return num_calls++ == fails_at_ ? Status(Fail(ExitCode::DoesNotFit, "{} broke", name)) : call();
  }
  auto FillSlots(const std::byte* from, int64_t stride, std::byte* to, int64_t bytes) const -> Status {
    for (int64_t i = 0; i < members_; ++i) {
      std::memmove(to + i * bytes, from + i * stride, static_cast<size_t>(bytes));
    }
    return Success{};
  }

  int64_t members_;
  int64_t fails_at_;
};

/// Operands of 64 floats a rank, in the buffer of a rank.
struct Operands {
  explicit Operands(std::byte* buffer) : base(buffer) {}
  auto At(int64_t offset, int64_t bytes) const -> CommSpan {
    return {.data = base + offset, .bytes = bytes, .arena = PeersArena, .offset = offset};
  }

  static constexpr int64_t Shard = 64 * 4;
  std::byte* base;
  CommSpan shard = At(0, Shard);
  CommSpan scratch = At(128 << 10, 64 << 10);
};

constexpr AxisSet Axes = AxisSet::All();
constexpr ReduceTypes Types{DType::F32, DType::F32};

auto AllGather(Communicator& comm, Queue& queue, const Operands& of, int64_t ranks) -> Status {
  return comm.AllGather(queue, Axes, of.shard, of.At(64 << 10, Operands::Shard * ranks), of.scratch);
}
auto ReduceScatter(Communicator& comm, Queue& queue, const Operands& of, int64_t ranks) -> Status {
  return comm.ReduceScatter(queue, Axes, of.At(64 << 10, Operands::Shard * ranks), of.shard, of.scratch, Types, false);
}
auto AllReduceBySlices(Communicator& comm, Queue& queue, const Operands& of, int64_t) -> Status {
  return comm.AllReduce(queue, Axes, of.shard, of.scratch, DType::F32);
}
auto AllReduceAsItIs(Communicator& comm, Queue& queue, const Operands& of, int64_t) -> Status {
  std::array<std::byte, 64> data{};
  return comm.AllReduce(queue, Axes, {.data = data.data(), .bytes = std::ssize(data)}, of.scratch, DType::F32);
}
auto ExchangeWord(Communicator& comm, Queue& queue, const Operands& of, int64_t) -> Status {
  return comm.Exchange(queue, Axes, of.base, 16, of.scratch.data);
}

struct Row {
  Comm comm;
  Status (*collective)(Communicator& comm, Queue& queue, const Operands& of, int64_t ranks);
  /// The calls of one rank.
  std::string calls;
};

// Two ranks of one host, and with Gloo as many of another.
const Row Rows[] = {
    {Comm::Shm, AllGather, " meet copy copy meet"},
    {Comm::Shm, ReduceScatter, " meet fold meet"},
    {Comm::Shm, AllReduceBySlices, " meet fold meet copy meet"},
    {Comm::Shm, AllReduceAsItIs, " sum"},
    {Comm::Shm, ExchangeWord, ""},
    {Comm::Gloo, AllGather, " meet copy copy gather meet copy copy meet"},
    {Comm::Gloo, ReduceScatter, " meet fold fold all_to_all fold meet"},
    {Comm::Gloo, AllReduceBySlices, " meet fold copy clear all_to_all fold gather copy meet copy meet"},
    {Comm::Gloo, AllReduceAsItIs, " sum gather fold"},
    {Comm::Gloo, ExchangeWord, " gather"},
    {Comm::GlooFlat, AllGather, " gather"},
    {Comm::GlooFlat, ReduceScatter, " all_to_all fold"},
    {Comm::GlooFlat, AllReduceBySlices, " copy clear all_to_all fold gather copy"},
    {Comm::GlooFlat, AllReduceAsItIs, " gather fold"},
    {Comm::GlooFlat, ExchangeWord, " gather"},
};

/// Runs the collective on two ranks, whose engines work but for one call of rank 1; then they meet. Returns what rank 0
/// and rank 1 have as errors, and puts the calls of rank 1 into `calls`.
auto RunRow(const Row& row, int64_t fails_at, std::string& calls) -> std::vector<std::string> {
  const Mesh mesh = row.comm == Comm::Shm ? Mesh{{1, 2, 1}} : Mesh{{2, 2, 1}, 1, 2};
  const int64_t members = row.comm == Comm::Gloo ? 2 : mesh.num_ranks();
  World world(mesh, Threads);
  PeerTable peers(2);
  peers[0][static_cast<size_t>(PeersArena)] = world.buffer(0);
  peers[1][static_cast<size_t>(PeersArena)] = world.buffer(1);
  return world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    const bool is_failing = member->rank() == 1;
    auto owned = std::make_unique<FailingEngine>(member, peers, members, is_failing ? fails_at : INT64_MAX);
    FailingEngine& engine = *owned;
    NoQueue queue;
    // Memory of the host goes another way, which fails as the engine does.
    LayeredCommunicator comm(std::move(owned), mesh, row.comm,
                             [&](AxisSet axes, const std::byte* mine, int64_t bytes, std::byte* all) {
                               return engine.Gather(queue, axes, mine, bytes, all);
                             });
    Status status = row.collective(comm, queue, Operands(world.buffer(member->rank())), mesh.num_ranks());
    if (is_failing) {
      calls = engine.calls;
    }
    if (status) {
      status = member->Meet(member->GroupOf(Axes));
    }
    if (status) {
      return "";
    }
    member->block().MarkFailed(member->rank(), status.error());
    return status.error().message;
  });
}

TEST(FailingEngine, IsNamedByPeers) {
  for (const Row& row : Rows) {
    SCOPED_TRACE(fmt::format("{}:{}", ToText(row.comm), row.calls));
    std::string calls;
    EXPECT_THAT(RunRow(row, INT64_MAX, calls), testing::Each(""));
    EXPECT_EQ(calls, row.calls);
    size_t begin = 0;
    for (int64_t fails_at = 0; begin < row.calls.size(); ++fails_at) {
      const size_t end = std::min(row.calls.find(' ', begin + 1), row.calls.size());
      const std::vector<std::string> errors = RunRow(row, fails_at, calls);
      EXPECT_EQ(calls, row.calls.substr(0, end));
      EXPECT_EQ(errors[1], row.calls.substr(begin + 1, end - begin - 1) + " broke");
      EXPECT_THAT(errors[0],
                  StartsWith(fmt::format("rank 1 failed with exit code {}", static_cast<int>(ExitCode::DoesNotFit))));
      begin = end;
    }
  }
}

}  // namespace
}  // namespace shardc
