// Attention, forward and backward, over 4,096 tokens of documents beside one document of as many: `ratio` is the median
// over rounds of the time of the former by that of the latter, which run by turns, on one thread.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>

#include "tests/support/kernel_fixture.h"

namespace shardc {

namespace {

constexpr int64_t Sequence = 4096;
/// Rows of other documents, since one row may have a long one.
constexpr int64_t Rows = 8;
constexpr int64_t Heads = 2;
constexpr int64_t HeadDim = 64;
constexpr int64_t MeanLength = Sequence / 8;

enum class Lengths { Equal, LogNormal };

/// Returns starts [S, B] of documents, the last of each row cut at its end.
auto DrawStarts(Lengths lengths) -> std::vector<int32_t> {
  std::mt19937_64 random(1);
  constexpr double Sigma = 1;
  std::lognormal_distribution<double> log_normal(std::log(static_cast<double>(MeanLength)) - Sigma * Sigma / 2, Sigma);
  std::vector<int32_t> starts(Sequence * Rows);
  for (int64_t b = 0; b < Rows; ++b) {
    for (int64_t start = 0; start < Sequence;) {
      const auto drawn = static_cast<int64_t>(std::round(log_normal(random)));
      const int64_t length = lengths == Lengths::Equal ? MeanLength : std::max<int64_t>(drawn, 1);
      const int64_t end = std::min(start + length, Sequence);
      for (int64_t s = start; s < end; ++s) {
        starts[static_cast<size_t>(s * Rows + b)] = static_cast<int32_t>(start);
      }
      start = end;
    }
  }
  return starts;
}

/// Returns the pairs of query and key that attention sees, by those of one document.
auto ShareOfPairs(const std::vector<int32_t>& starts) -> double {
  double pairs = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    pairs += static_cast<double>(static_cast<int64_t>(i) / Rows - starts[i] + 1);
  }
  return pairs / static_cast<double>(Rows * Sequence * (Sequence + 1) / 2);
}

/// Both kernels over the same operands, with starts or without.
class ForwardAndBackward {
 public:
  ForwardAndBackward(DType dtype, const std::vector<int32_t>& starts) {
    const Dims q_dims{Sequence, Rows, Heads * HeadDim};
    const Dims k_dims{Sequence, Rows, HeadDim};
    const auto operand = [&](const Dims& dims, uint64_t seed) {
      return fixture_.Floats(dtype, dims, RandomNumbers(dtype, NumElements(dims), seed));
    };
    const op::Attention forward{.q = operand(q_dims, 1),
                                .k = operand(k_dims, 2),
                                .v = operand(k_dims, 3),
                                .starts = starts.empty() ? ValueId{} : fixture_.I32({Sequence, Rows}, starts),
                                .y = fixture_.Add(dtype, q_dims),
                                .lse = fixture_.Add(DType::F32, {Rows, Heads, Sequence}),
                                .scratch = {},
                                .head_dim = HeadDim};
    forward_ = fixture_.BindWithScratch(forward);
    backward_ = fixture_.BindWithScratch(op::AttentionBackward{.dy = operand(q_dims, 4),
                                                               .q = forward.q,
                                                               .k = forward.k,
                                                               .v = forward.v,
                                                               .y = forward.y,
                                                               .lse = forward.lse,
                                                               .starts = forward.starts,
                                                               .dq = fixture_.Add(dtype, q_dims),
                                                               .dk = fixture_.Add(dtype, k_dims),
                                                               .dv = fixture_.Add(dtype, k_dims),
                                                               .scratch = {},
                                                               .head_dim = HeadDim});
  }

  auto Seconds() -> double {
    const auto begin = std::chrono::steady_clock::now();
    const bool ran = forward_(Moment{}).ok() && backward_(Moment{}).ok();
    CHECK(ran, "a kernel failed");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  KernelFixture fixture_;
  Kernel forward_;
  Kernel backward_;
};

}  // namespace

static auto BenchDocuments(benchmark::State& state, DType dtype, Lengths lengths) -> void {
  const std::vector<int32_t> starts = DrawStarts(lengths);
  ForwardAndBackward whole(dtype, {});
  ForwardAndBackward documents(dtype, starts);
  whole.Seconds();
  documents.Seconds();
  std::vector<double> ratios;
  for ([[maybe_unused]] auto _ : state) {
    const double of_documents = documents.Seconds();
    state.SetIterationTime(of_documents);
    ratios.push_back(of_documents / whole.Seconds());
  }
  std::ranges::sort(ratios);
  state.counters["ratio"] = ratios[ratios.size() / 2];
  state.counters["pairs"] = ShareOfPairs(starts);
}
BENCHMARK_CAPTURE(BenchDocuments, EqualF32, DType::F32, Lengths::Equal)->UseManualTime()->Iterations(9);
BENCHMARK_CAPTURE(BenchDocuments, LogNormalF32, DType::F32, Lengths::LogNormal)->UseManualTime()->Iterations(9);
BENCHMARK_CAPTURE(BenchDocuments, EqualBF16, DType::BF16, Lengths::Equal)->UseManualTime()->Iterations(9);
BENCHMARK_CAPTURE(BenchDocuments, LogNormalBF16, DType::BF16, Lengths::LogNormal)->UseManualTime()->Iterations(9);

}  // namespace shardc
