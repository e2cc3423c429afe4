// Initial values, a million elements at a time on one thread, beside LibTorch's.
#include <benchmark/benchmark.h>

#include <vector>

#include "compiler/expr/jit/element_jit.h"
#include "runtime/init/initial_values.h"
#include "runtime/kernels/machine/device.h"
#include "runtime/kernels/machine/draw_in_blocks.h"
#include "tests/bench/library_init.h"
#include "tests/support/vector_of.h"

namespace shardc {
namespace {

constexpr int64_t Size = int64_t{1} << 20;

auto ValuesOf(std::string_view rule) -> InitialValues {
  return InitialValues(VectorOf(rule, 1, "model.layers.0.mlp.up_proj.weight"), NoOthers);
}

auto Fills(benchmark::State& state, std::string_view rule) -> void {
  InitialValues values = ValuesOf(rule);
  std::vector<float> out(Size);
  int64_t begin = 0;
  for (auto _ : state) {
    CHECK(values.Fill({begin, begin + Size}, out.data()).ok(), "{}", rule);
    begin += Size;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK_CAPTURE(Fills, normal, "normal(0, 0.02)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Fills, trunc_normal, "trunc_normal(0, 0.02, -0.04, 0.04)")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Fills, uniform, "uniform(-0.05, 0.05)")->Unit(benchmark::kMillisecond);

/// As the op does it: counted and summed piece by piece.
auto FillsAndSums(benchmark::State& state, std::string_view rule) -> void {
  InitialValues values = ValuesOf(rule);
  const Loops& loops = LoopsOf(Plan());
  std::vector<float> out(Size);
  Drawn drawn;
  int64_t begin = 0;
  for (auto _ : state) {
    const Status filled = DrawInBlocks(loops, {begin, begin + Size}, out.data(), 0.0, &drawn,
                                       [&](Interval piece, float* to) { return values.Fill(piece, to); });
    CHECK(filled.ok(), "{}", rule);
    begin += Size;
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * Size);
}
BENCHMARK_CAPTURE(FillsAndSums, normal, "normal(0, 0.02)")->Unit(benchmark::kMillisecond);

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

/// Ten rules of a recipe, of three forms; constants are not compiled.
auto CompilesTenRules(benchmark::State& state) -> void {
  constexpr std::string_view Rules[] = {
      "normal(0, 1)",         "normal(0, 0.02)",
      "normal(0, 0.0025)",    "trunc_normal(0, 0.02, -2, 2)",
      "uniform(-0.05, 0.05)", "trunc_normal(0, 0.01, -0.03, 0.03)",
      "uniform(-1, 1)",       "trunc_normal(0, 0.005, -0.015, 0.015)",
      "normal(0, 0.01)",      "trunc_normal(0, 1, -3, 3)",
  };
  for (auto _ : state) {
    ElementJit jit;
    for (const std::string_view rule : Rules) {
      benchmark::DoNotOptimize(jit.Kernel(MakeElementProgram(VectorOf(rule, 1, "w"), NoOthers).value));
    }
  }
}
BENCHMARK(CompilesTenRules)->Unit(benchmark::kMillisecond);

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
