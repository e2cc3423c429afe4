// What it takes to know where a run over a mixture stands: counts of all steps from the first on, as a restart and
// explain work them out.
#include <benchmark/benchmark.h>

#include "compiler/base/check.h"
#include "compiler/plan/sample_quotas.h"
#include "runtime/data/mixture.h"

namespace shardc {
namespace {

auto MixtureOf(const std::vector<std::string>& weights) -> DataSource {
  DataSource data;
  for (const std::string& weight : weights) {
    data.sources.push_back({.name = fmt::format("s{}", data.sources.size()), .weight = weight, .files = {}});
  }
  return data;
}

auto CountSteps(benchmark::State& state, const std::vector<std::string>& weights) -> void {
  const DataSource data = MixtureOf(weights);
  const int64_t steps = state.range(0);
  for (auto _ : state) {
    auto quotas = SampleQuotas::Create(data, 512, steps);
    CHECK(quotas.ok());
    while (quotas->step() < steps) {
      CHECK(quotas->Next().ok());
    }
    benchmark::DoNotOptimize(quotas->taken());
  }
  state.SetItemsProcessed(state.iterations() * steps);
}

auto CountsConstantWeights(benchmark::State& state) -> void { CountSteps(state, {"0.6", "0.3", "0.1"}); }
auto CountsLinearWeights(benchmark::State& state) -> void {
  CountSteps(state, {"0.9 - 0.4 * step / steps", "0.3", "0.1 + 0.2 * step / steps"});
}
auto CountsPhases(benchmark::State& state) -> void {
  CountSteps(state,
             {"if step < 0.9 * steps then 1 else 0.2", "cosine(2000, 0.1)", "if step < 0.9 * steps then 0 else 1"});
}
/// Two sources fall silent with a part of a sample open: the look ahead goes to the end of the run.
auto CountsSilentSources(benchmark::State& state) -> void {
  CountSteps(state, {"if step < 100 then 0.7 else 0", "if step < 100 then 0.6 else 0", "2 + step / steps",
                     "1 + step / steps", "1e-9"});
}
BENCHMARK(CountsConstantWeights)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CountsLinearWeights)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CountsPhases)->Arg(1'000'000)->Unit(benchmark::kMillisecond);
BENCHMARK(CountsSilentSources)->Arg(1'000'000)->Unit(benchmark::kMillisecond);

/// A rank's samples of one step after another: 64 of 512.
auto FindsSamples(benchmark::State& state) -> void {
  DataSource data = MixtureOf({"0.9 - 0.4 * step / steps", "0.3", "0.1"});
  data.order = state.range(0) == 0 ? SampleOrder::Shuffled : SampleOrder::Sequential;
  auto mixture = Mixture::Create(data, 512, 1'000'000'000);
  CHECK(mixture.ok());
  int64_t step = 0;
  for (auto _ : state) {
    for (int64_t i = 0; i < 64; ++i) {
      benchmark::DoNotOptimize(*mixture->At(step * 512 + i));
    }
    ++step;
  }
}
BENCHMARK(FindsSamples)->ArgName("sequential")->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardc
