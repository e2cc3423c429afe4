// The collective kernels as a plan binds them: views with a repeat index, accumulation, and what `control` agrees on.
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/control/control_block.h"
#include "runtime/kernels/host/host.h"
#include "runtime/launch/launch.h"

namespace shardc {
namespace {

constexpr int64_t Count = 1000;

/// A plan of bare buffers: what a kernel sees of one.
class Bench {
 public:
  Bench() { plan.mesh = Mesh{{1, 3, 1}}; }

  auto Add(Arena arena, DType dtype, int64_t count, int64_t repeats = 1) -> ValueId {
    int64_t& arena_bytes = plan.arena_bytes[static_cast<size_t>(arena)];
    const int64_t bytes = count * SizeOf(dtype);
    const BufferId buffer =
        plan.buffers.Add({.name = "b", .arena = arena, .bytes = Bytes{bytes * repeats}, .offset = arena_bytes});
    arena_bytes += RoundUp(bytes * repeats, 64);
    RankExpr offset = RankExpr::Constant(0);
    offset.repeat = repeats > 1 ? bytes : 0;
    return plan.values.Add({.buffer = buffer, .offset = offset, .dtype = dtype, .shape = {count}, .name = "v"});
  }

  Plan plan;
};

class BenchBinder final : public Binder {
 public:
  explicit BenchBinder(RankContext& context) : context_(context) { context.device->scalars() = ScalarTable(8); }
  auto plan() const -> const Plan& override { return *context_.plan; }
  auto rank() const -> int64_t override { return context_.rank; }
  auto ViewOf(ValueId id) -> View override {
    const Value& value = plan().values[id];
    const Buffer& buffer = plan().buffers[value.buffer];
    return {.base = context_.device->Base(buffer.arena) + buffer.offset,
            .bytes_per_repeat = value.offset.repeat,
            .dtype = value.dtype,
            .shape = value.shape,
            .arena = buffer.arena,
            .arena_offset = buffer.offset};
  }
  auto communicator() -> Communicator& override { return *context_.comm; }
  auto control() -> RankControl& override { return *context_.control; }
  auto device() -> RankDevice& override { return *context_.device; }
  auto tokens() -> TokenReader& override { return None<TokenReader>(); }
  auto writer() -> CheckpointWriter& override { return None<CheckpointWriter>(); }
  auto reader() -> CheckpointReader& override { return None<CheckpointReader>(); }

 private:
  template <class T>
  auto None() -> T& {
    CHECK(false, "not for collectives");
    return *static_cast<T*>(nullptr);
  }

  RankContext& context_;
};

/// Runs `rank_main` on three threads; a rank says what is wrong by an error.
auto RunRanks(const Plan& plan, const RankMain& rank_main) -> void {
  const auto result = LaunchThreads(plan, {}, rank_main);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(*result, ExitCode::Ok);
}

auto Want(bool holds, const std::string& what) -> Status {
  return holds ? Status(Success{}) : Status(Fail(ExitCode::InternalFault, "{}", what));
}

auto Element(int64_t rank, int64_t i) -> float {
  return static_cast<float>(std::sin(static_cast<double>(rank * 7919 + i)));
}

TEST(CollectiveKernels, AllGatherTakesTheRepeatIndex) {
  Bench bench;
  const ValueId shard = bench.Add(Arena::SharedPersistent, DType::F32, Count, 3);
  const ValueId full = bench.Add(Arena::Transient, DType::F32, Count * 3);
  RunRanks(bench.plan, [&](RankContext& context) -> ErrorOr<ExitCode> {
    BenchBinder binder(context);
    const Kernel kernel =
        host::Bind(op::AllGather{.shard = shard, .full = full, .axes = AxisSet::Of(Axis::Dp)}, binder);
    for (int64_t repeat = 0; repeat < 3; ++repeat) {
      const Moment moment{.step = 1, .repeat = repeat};
      float* mine = binder.ViewOf(shard).At<float>(moment);
      for (int64_t i = 0; i < Count; ++i) {
        mine[i] = Element(context.rank, i + repeat * Count);
      }
      RETURN_IF_ERROR(kernel(moment));
      const float* all = binder.ViewOf(full).At<float>(moment);
      for (int64_t k = 0; k < Count * 3; ++k) {
        RETURN_IF_ERROR(Want(all[k] == Element(k / Count, k % Count + repeat * Count), fmt::format("element {}", k)));
      }
    }
    return ExitCode::Ok;
  });
}

TEST(CollectiveKernels, ReduceScatterWritesOrAdds) {
  Bench bench;
  const ValueId full = bench.Add(Arena::SharedTransient, DType::F32, Count * 3);
  const ValueId before = bench.Add(Arena::Transient, DType::F32, Count);
  const ValueId after = bench.plan.values.Add(bench.plan.values[before]);
  RunRanks(bench.plan, [&](RankContext& context) -> ErrorOr<ExitCode> {
    BenchBinder binder(context);
    const AxisSet axes = AxisSet::Of(Axis::Dp);
    const Kernel writes = host::Bind(op::ReduceScatter{.full = full, .shard = before, .axes = axes}, binder);
    const Kernel adds =
        host::Bind(op::ReduceScatter{.full = full, .shard = after, .shard_onto = before, .axes = axes}, binder);
    float* mine = binder.ViewOf(full).At<float>({});
    for (int64_t i = 0; i < Count * 3; ++i) {
      mine[i] = Element(context.rank, i);
    }
    RETURN_IF_ERROR(writes({}));
    RETURN_IF_ERROR(adds({}));
    const float* shard = binder.ViewOf(after).At<float>({});
    for (int64_t i = 0; i < Count; ++i) {
      const int64_t k = context.rank * Count + i;
      const float sum = Element(0, k) + Element(1, k) + Element(2, k);
      RETURN_IF_ERROR(Want(shard[i] == sum + sum, fmt::format("element {}", i)));
    }
    return ExitCode::Ok;
  });
}

class AllReduceKernel : public testing::TestWithParam<Arena> {};

INSTANTIATE_TEST_SUITE_P(CollectiveKernels, AllReduceKernel, testing::Values(Arena::Transient, Arena::SharedTransient));

TEST_P(AllReduceKernel, GoesBeyondTheStagingRoom) {
  constexpr int64_t Many = ControlBlock::SlotBytes / 8 * 2 + 5;
  Bench bench;
  const ValueId x = bench.Add(GetParam(), DType::F64, Many);
  RunRanks(bench.plan, [&](RankContext& context) -> ErrorOr<ExitCode> {
    BenchBinder binder(context);
    const Kernel kernel = host::Bind(op::AllReduce{.x = x, .y = x, .axes = AxisSet::All()}, binder);
    auto* data = binder.ViewOf(x).At<double>({});
    for (int64_t i = 0; i < Many; ++i) {
      data[i] = static_cast<double>(i * 10 + context.rank);
    }
    RETURN_IF_ERROR(kernel({}));
    for (int64_t i = 0; i < Many; ++i) {
      RETURN_IF_ERROR(Want(data[i] == static_cast<double>(i * 30 + 3), fmt::format("element {}", i)));
    }
    return ExitCode::Ok;
  });
}

struct ControlCase {
  /// Rank that asks for a stop, or -1.
  int64_t stopper;
  std::array<int64_t, 3> bad;
  double stop;
  double nonfinite;
  double bad_parameter;
};

TEST(CollectiveKernels, ControlMakesTheRanksAgree) {
  Bench bench;
  for (int i = 0; i < 9; ++i) {
    bench.plan.parameters.Add({.name = fmt::format("p{}", i)});
  }
  const ValueId bad = bench.Add(Arena::Transient, DType::I64, 1);
  for (const ControlCase& c : {ControlCase{-1, {9, 9, 9}, 0, 0, -1}, ControlCase{2, {9, 9, 9}, 1, 0, -1},
                               ControlCase{-1, {9, 7, 4}, 0, 1, 4}, ControlCase{0, {0, 9, 8}, 1, 1, 0}}) {
    RunRanks(bench.plan, [&](RankContext& context) -> ErrorOr<ExitCode> {
      BenchBinder binder(context);
      const Kernel kernel = host::Bind(op::Control{.bad = bad,
                                                   .stop = ScalarId{1},
                                                   .nonfinite = ScalarId{2},
                                                   .bad_parameter = ScalarId{3},
                                                   .axes = AxisSet::All()},
                                       binder);
      *binder.ViewOf(bad).At<int64_t>({}) = c.bad[static_cast<size_t>(context.rank)];
      if (context.rank == c.stopper) {
        binder.scalars().RequestStop();
      }
      RETURN_IF_ERROR(kernel({}));
      const ScalarTable& scalars = binder.scalars();
      RETURN_IF_ERROR(Want(scalars[ScalarId{1}] == c.stop, "stop"));
      RETURN_IF_ERROR(Want(scalars[ScalarId{2}] == c.nonfinite, "nonfinite"));
      RETURN_IF_ERROR(Want(scalars[ScalarId{3}] == c.bad_parameter, "bad_parameter"));
      return ExitCode::Ok;
    });
  }
}

}  // namespace
}  // namespace shardc
