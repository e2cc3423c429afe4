// Initial values, a million elements at a time on one thread, beside LibTorch's.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/init/fill.h"
#include "runtime/kernels/cpu/device.h"
#include "runtime/kernels/cpu/draw_in_pieces.h"
#include "tests/bench/library_init.h"

namespace shardc {
namespace {

constexpr int64_t Size = int64_t{1} << 20;

auto Fills(benchmark::State& state, const Distribution& rule) -> void {
  std::vector<float> out(Size);
  int64_t begin = 0;
  for (auto _ : state) {
    FillRule(rule, 1, "model.layers.0.mlp.up_proj.weight", {begin, begin + Size}, out.data());
    begin += Size;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK_CAPTURE(Fills, normal, Distribution{DistributionKind::Normal, {0, 0.02}})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Fills, trunc_normal, Distribution{DistributionKind::TruncNormal, {0, 0.02, -0.04, 0.04}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Fills, uniform, Distribution{DistributionKind::Uniform, {-0.05, 0.05}})
    ->Unit(benchmark::kMillisecond);

/// As the op does it: counted and summed piece by piece.
auto FillsAndSums(benchmark::State& state, const Distribution& rule) -> void {
  const Loops& loops = LoopsOf(Plan());
  std::vector<float> out(Size);
  Drawn drawn;
  int64_t begin = 0;
  for (auto _ : state) {
    DrawInPieces(loops, {begin, begin + Size}, out.data(), 0.0, &drawn,
                 [&](Interval piece, float* to) { FillRule(rule, 1, "model.layers.0.mlp.up_proj.weight", piece, to); });
    begin += Size;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK_CAPTURE(FillsAndSums, normal, Distribution{DistributionKind::Normal, {0, 0.02}})
    ->Unit(benchmark::kMillisecond);

/// What that adds: sums of what lies in the cache.
auto Sums(benchmark::State& state) -> void {
  constexpr int64_t PieceSize = 16384;
  const Loops& loops = LoopsOf(Plan());
  std::vector<float> piece(PieceSize, 0.5F);
  Drawn drawn;
  for (auto _ : state) {
    for (int64_t begin = 0; begin < Size; begin += PieceSize) {
      loops.f32.AddMoments(piece.data(), PieceSize, 0, &drawn.sum, &drawn.squares);
    }
    benchmark::DoNotOptimize(drawn);
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK(Sums)->Unit(benchmark::kMillisecond);

template <class Fill>
auto LibraryFills(benchmark::State& state, const Fill& fill) -> void {
  std::vector<float> out(Size);
  for (auto _ : state) {
    fill(out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK_CAPTURE(LibraryFills, normal, [](float* out) {
  LibraryNormal(out, Size, 0, 0.02);
})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(LibraryFills, trunc_normal, [](float* out) {
  LibraryTruncNormal(out, Size, 0, 0.02, -0.04, 0.04);
})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardc
