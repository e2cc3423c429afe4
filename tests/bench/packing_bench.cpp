// What it takes to pack documents into rows: the time of a window of 1,000,000, and the padding that is left.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/base/check.h"
#include "compiler/data/packed_split.h"

namespace shardc {
namespace {

constexpr int64_t NumDocuments = 1'000'000;

/// Lengths as texts have them: log-normal with mean seq / 8 and sigma 1, of at most seq tokens.
auto TableFor(int64_t seq) -> std::shared_ptr<const DocumentTable> {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> lengths(std::log(static_cast<double>(seq) / 8) - 0.5, 1);
  std::vector<int64_t> drawn(NumDocuments);
  for (int64_t& length : drawn) {
    length = std::clamp<int64_t>(std::llround(lengths(random)), 1, seq);
  }
  return std::make_shared<const DocumentTable>(DocumentTable::OfLengths("texts", drawn));
}

auto SplitOf(const std::shared_ptr<const DocumentTable>& table, int64_t seq) -> PackedSplit {
  auto split = PackedSplit::Create(table, {0, table->num_ids()}, {.seq = seq, .seed = 1});
  CHECK(split.ok());
  return *std::move(split);
}

/// Packs a window and reads a row of it: 1,000,000 documents are one window. Counting its rows comes first.
auto PacksWindow(benchmark::State& state) -> void {
  const int64_t seq = state.range(0);
  const auto table = TableFor(seq);
  int64_t rows = 0;
  for (auto _ : state) {
    PackedSplit split = SplitOf(table, seq);
    benchmark::DoNotOptimize(split.Row(0));
    rows = split.RowsOfEpoch(0);
  }
  const auto least = static_cast<double>((table->num_ids() + seq - 1) / seq);
  state.counters["rows_over_least"] = static_cast<double>(rows) / least - 1;
}
BENCHMARK(PacksWindow)->ArgName("seq")->Arg(512)->Arg(4096)->Arg(32768)->Unit(benchmark::kMillisecond);

/// Counts the rows of a window without packing it, as a restart does with those before.
auto CountsWindow(benchmark::State& state) -> void {
  const auto table = TableFor(state.range(0));
  for (auto _ : state) {
    PackedSplit split = SplitOf(table, state.range(0));
    benchmark::DoNotOptimize(split.RowsOfEpoch(0));
  }
}
BENCHMARK(CountsWindow)->ArgName("seq")->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardc
