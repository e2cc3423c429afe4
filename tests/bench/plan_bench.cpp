// Plan time: recipe text to verified plan and its text, for a small model and a very large one; and how it grows with
// blocks and with ranks. Read time of a text as large as a recipe may be.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "compiler/passes/pipeline.h"
#include "compiler/plan/text.h"
#include "tests/support/compile_recipe.h"

namespace shardc {
namespace {

using Sets = std::vector<std::string>;

auto RecipeText(const std::string& name) -> std::string {
  const std::ifstream file(std::string(SHARDC_SOURCE_DIR "/recipes/") + name + ".toml");
  CHECK(file.good(), "no recipe {}", name);
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

auto PlanOf(const std::string& text, const Sets& sets = {}) -> Plan {
  return CompileRecipe("bench.toml", text, sets).plan;
}

constexpr const char* Quickstart = "quickstart";
/// On 16,384 ranks.
constexpr const char* Llama405B = "published/llama3_405b";

auto PlansAndPrints(benchmark::State& state, const char* recipe) -> void {
  const std::string text = RecipeText(recipe);
  int64_t ops = 0;
  for (auto _ : state) {
    const Plan plan = PlanOf(text);
    ops = std::ssize(plan.section(SectionKind::Step).ops);
    benchmark::DoNotOptimize(PrintPlan(plan));
  }
  state.counters["step_ops"] = static_cast<double>(ops);
}
BENCHMARK_CAPTURE(PlansAndPrints, quickstart, Quickstart)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(PlansAndPrints, llama3_405b, Llama405B)->Unit(benchmark::kMillisecond);

auto Prints(benchmark::State& state, const char* recipe) -> void {
  const Plan plan = PlanOf(RecipeText(recipe));
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = PrintPlan(plan).size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}
BENCHMARK_CAPTURE(Prints, quickstart, Quickstart)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Prints, llama3_405b, Llama405B)->Unit(benchmark::kMillisecond);

/// Almost 1 MiB of whole numbers, in lines of almost 64 KiB.
auto LongLines() -> std::string {
  std::string text = "[z]\n";
  for (int line = 0; line < 16; ++line) {
    text += fmt::format("x{} = [", line);
    for (int i = 0; i < 32000; ++i) {
      text += "1,";
    }
    text += "]\n";
  }
  return text;
}

auto ReadsLongLines(benchmark::State& state) -> void {
  const std::string text = LongLines();
  for (auto _ : state) {
    SourceSet sources;
    Diagnostics diags(&sources);
    // [z] is no section, which is all there is to say.
    CHECK(!ReadRecipe("bench.toml", text, {}, sources, diags).ok(), "accepted");
  }
  state.SetBytesProcessed(static_cast<int64_t>(text.size()) * state.iterations());
}
BENCHMARK(ReadsLongLines)->Unit(benchmark::kMillisecond);

auto MedianOf(std::vector<double> figures) -> double {
  std::nth_element(figures.begin(), figures.begin() + std::ssize(figures) / 2, figures.end());
  return figures[figures.size() / 2];
}

/// The time of `shardc plan` with `large` over that with `small`, taken in turn: `ratio` is the median of the pairs.
/// The whole command, each in a process of its own: in one that has planned before, memory is there already, for the
/// small plan more than for the large.
auto Grows(benchmark::State& state, const Sets& small, const Sets& large) -> void {
  const auto milliseconds = [&](const Sets& sets) {
    std::string command =
        fmt::format("{}/shardc plan {}/recipes/{}.toml", SHARDC_BINARY_DIR, SHARDC_SOURCE_DIR, Llama405B);
    for (const std::string& set : sets) {
      command += " --set " + set;
    }
    const auto begin = std::chrono::steady_clock::now();
    const int status = std::system((command + " > /dev/null").c_str());
    CHECK(status == 0, "{}: status {}", command, status);
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  };
  milliseconds(small);
  std::vector<double> small_ms;
  std::vector<double> ratios;
  for (auto _ : state) {
    small_ms.push_back(milliseconds(small));
    ratios.push_back(milliseconds(large) / small_ms.back());
  }
  state.counters["small_ms"] = MedianOf(small_ms);
  state.counters["ratio"] = MedianOf(ratios);
}
BENCHMARK_CAPTURE(Grows, ten_times_the_layers, {}, {"model.layers=1260"})->Unit(benchmark::kMillisecond)->Iterations(9);
BENCHMARK_CAPTURE(Grows, to_65536_ranks_from_2, {"mesh.dp=2", "mesh.tp=1"}, {"mesh.dp=65536", "mesh.tp=1"})
    ->Unit(benchmark::kMillisecond)
    ->Iterations(25);

}  // namespace
}  // namespace shardc
