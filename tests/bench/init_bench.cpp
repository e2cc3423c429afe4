// Initial values, a million elements at a time on one thread, beside LibTorch's.
#include <benchmark/benchmark.h>

#include <vector>

#include "runtime/init/fill.h"
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
