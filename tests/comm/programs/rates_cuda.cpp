#include "tests/comm/programs/rates_cuda.h"

#include <algorithm>
#include <cstdio>

#include "compiler/base/stopwatch.h"
#include "tests/comm/programs/gpu_rank.h"

namespace shardc {
namespace {

/// Full vectors in bytes: those of a block of Llama 3 8B take 416 MiB in bf16.
constexpr std::array<int64_t, 5> Sizes{int64_t{1} << 20, int64_t{8} << 20, int64_t{64} << 20, int64_t{256} << 20,
                                       int64_t{512} << 20};
/// Collectives that are enqueued together, so that the host is ahead of the GPU as in a step.
constexpr size_t Together = 8;
constexpr int Repeats = 7;

/// Times collectives of a full vector of `bytes`, which are enqueued one after another.
auto MedianSeconds(GpuRank& rank, bool is_gather, int64_t bytes, int64_t num_ranks) -> ErrorOr<double> {
  const CommSpan full = rank.SpanOf(Arena::SharedTransient, 0, bytes);
  const CommSpan shard = rank.SpanOf(Arena::SharedTransient, Sizes.back(), bytes / num_ranks);
  const Stream stream = is_gather ? Stream::Dp : Stream::Reduce;
  Queue& queue = rank.device().queue(stream);
  const auto run = [&](size_t) {
    return is_gather ? rank.comm().AllGather(queue, AxisSet::Of(Axis::Dp), shard, full, {})
                     : rank.comm().ReduceScatter(queue, AxisSet::Of(Axis::Dp), full, shard, {}, {}, false);
  };
  std::vector<double> seconds;
  // The first one opens memory of peers, and loads kernels.
  for (int repeat = 0; repeat <= Repeats; ++repeat) {
    RETURN_IF_ERROR(rank.Meet());
    const Stopwatch watch;
    RETURN_IF_ERROR(rank.RunTurns(
        Together, [&](size_t) { return stream; }, run));
    seconds.push_back(watch.Elapsed().value / static_cast<double>(Together));
  }
  std::sort(seconds.begin() + 1, seconds.end());
  return seconds[1 + Repeats / 2];
}

auto Measure(GpuRank& rank, int64_t num_ranks) -> Status {
  for (const bool is_gather : {true, false}) {
    for (const int64_t size : Sizes) {
      // All slices are of whole vectors of 16 bytes.
      const int64_t bytes = size - size % (16 * num_ranks);
      const auto seconds = MedianSeconds(rank, is_gather, bytes, num_ranks);
      if (!seconds) {
        return seconds.error();
      }
      if (rank.number() == 0) {
        std::printf(R"({"kind": "%s", "bytes": %ld, "seconds": %.9f})"
                    "\n",
                    is_gather ? "all_gather" : "reduce_scatter", bytes, *seconds);
        std::fflush(stdout);
      }
    }
  }
  return Success{};
}

}  // namespace

auto MeasureRates(int64_t num_ranks, bool shares_gpus) -> ErrorOr<ExitCode> {
  const Mesh mesh{{1, num_ranks, 1}};
  Plan plan = PlanOfCollectives(mesh, {AxisSet::Of(Axis::Dp)}, 2 * Sizes.back(), 0);
  plan.run.share_gpus = shares_gpus;
  World world(mesh, Processes);
  const auto texts =
      world.Run({.timeout = Seconds{60}, .warn = {}}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
        const auto rank = GpuRank::Create(plan, member, false);
        Status measured = rank ? Measure(**rank, num_ranks) : Status(rank.error());
        measured = measured ? (*rank)->comm().Close() : measured;
        return measured ? "" : measured.error().message;
      });
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    if (!texts[rank].empty()) {
      return Fail(ExitCode::Environment, "rank {}: {}", rank, texts[rank]);
    }
  }
  return ExitCode::Ok;
}

}  // namespace shardc
