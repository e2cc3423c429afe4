// Collectives between threads of one process, which share everything with those between processes but the page tables.
// Barrier of 2 ranks with both there: the fixed cost of every collective.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/comm/cpu_engine.h"
#include "runtime/comm/layered_communicator.h"
#include "runtime/control/host_control.h"
#include "runtime/memory/arenas.h"
#include "tests/support/no_queue.h"

namespace shardc {
namespace {

/// What one rank has.
struct Rank {
  Rank(ControlBlock& block, const SharedArenas& shared, int64_t rank)
      : arenas(*ArenaSet::Create(shared, rank)),
        member(std::make_shared<HostMember>(block, rank)),
        control(member),
        comm(std::make_unique<CpuEngine>(member, shared.Peers()), control.mesh(), Comm::Shm) {}

  ArenaSet arenas;
  std::shared_ptr<HostMember> member;
  HostControl control;
  LayeredCommunicator comm;
  NoQueue queue;
};

/// Ranks that answer collectives for as long as rank 0, the benchmark's own thread, asks for them.
class Ranks {
 public:
  using Body = std::function<Status(Rank&)>;

  Ranks(int64_t num_ranks, int64_t bytes, Body body) : body_(std::move(body)) {
    ArenaSizes sizes{};
    sizes[static_cast<size_t>(Arena::SharedTransient)] = bytes;
    sizes[static_cast<size_t>(Arena::Transient)] = bytes;
    shared_ = std::make_unique<SharedArenas>(*SharedArenas::Create(sizes, {0, num_ranks}));
    block_ = *ControlBlock::Create({.mesh = Mesh{{1, num_ranks, 1}}, .members = ControlBlock::Members::Threads});
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      block_->Join(rank);
      ranks_.push_back(std::make_unique<Rank>(*block_, *shared_, rank));
    }
    for (size_t rank = 1; rank < ranks_.size(); ++rank) {
      threads_.emplace_back([this, rank] {
        while (Ask(rank)) {
          Run(rank);
        }
      });
    }
  }
  ~Ranks() {
    over_ = 1;
    Ask(0);
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }

  /// `count` rounds on all ranks.
  auto Rounds(int64_t count) -> void {
    rounds_ = count;
    Ask(0);
    Run(0);
  }

 private:
  /// Meets the others; false when it is over.
  auto Ask(size_t rank) -> bool {
    CHECK(ranks_[rank]->control.Barrier(AxisSet::All()).ok(), "barrier");
    return over_ == 0;
  }
  auto Run(size_t rank) -> void {
    for (int64_t i = 0; i < rounds_; ++i) {
      CHECK(body_(*ranks_[rank]).ok(), "collective");
    }
  }

  Body body_;
  std::unique_ptr<SharedArenas> shared_;
  std::unique_ptr<ControlBlock> block_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<std::thread> threads_;
  std::atomic<int> over_ = 0;
  std::atomic<int64_t> rounds_ = 0;
};

/// One iteration is Batch rounds, so that starting them does not count.
constexpr int64_t Batch = 100;

auto RunBatches(benchmark::State& state, Ranks& ranks, int64_t bytes_per_round) -> void {
  for ([[maybe_unused]] auto _ : state) {
    ranks.Rounds(Batch);
  }
  state.counters["per_round"] = benchmark::Counter(
      static_cast<double>(Batch), benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  if (bytes_per_round > 0) {
    state.SetBytesProcessed(state.iterations() * Batch * bytes_per_round);
  }
}

auto Barrier(benchmark::State& state) -> void {
  Ranks ranks(state.range(0), 4096, [](Rank& rank) { return rank.control.Barrier(AxisSet::All()); });
  RunBatches(state, ranks, 0);
}
BENCHMARK(Barrier)->Name("comm/barrier")->Arg(2)->Arg(3)->Arg(4)->UseRealTime();

auto SumOne(benchmark::State& state) -> void {
  Ranks ranks(state.range(0), 4096, [](Rank& rank) {
    double value = 1;
    return rank.control.Sum(AxisSet::All(), reinterpret_cast<std::byte*>(&value), 1, DType::F64);
  });
  RunBatches(state, ranks, 0);
}
BENCHMARK(SumOne)->Name("comm/sum_f64")->Arg(2)->UseRealTime();

auto SpanOf(const ArenaSet& arenas, Arena arena, int64_t bytes) -> CommSpan {
  return {.data = arenas.Base(arena), .bytes = bytes, .arena = arena, .offset = 0};
}

auto AllGather(benchmark::State& state) -> void {
  const int64_t full = state.range(0);
  Ranks ranks(2, full, [full](Rank& rank) {
    return rank.comm.AllGather(rank.queue, AxisSet::All(), SpanOf(rank.arenas, Arena::SharedTransient, full / 2),
                               SpanOf(rank.arenas, Arena::Transient, full), {});
  });
  RunBatches(state, ranks, full);
}
BENCHMARK(AllGather)->Name("comm/all_gather_2_ranks")->Arg(64 << 10)->Arg(1 << 20)->Arg(16 << 20)->UseRealTime();

auto ReduceScatter(benchmark::State& state) -> void {
  const int64_t full = state.range(0);
  Ranks ranks(2, full, [full](Rank& rank) {
    return rank.comm.ReduceScatter(rank.queue, AxisSet::All(), SpanOf(rank.arenas, Arena::SharedTransient, full),
                                   SpanOf(rank.arenas, Arena::Transient, full / 2), {}, {DType::F32, DType::F32},
                                   false);
  });
  RunBatches(state, ranks, full);
}
BENCHMARK(ReduceScatter)
    ->Name("comm/reduce_scatter_2_ranks")
    ->Arg(64 << 10)
    ->Arg(1 << 20)
    ->Arg(16 << 20)
    ->UseRealTime();

}  // namespace
}  // namespace shardc
