// Plan time: recipe text to verified plan, for a small model and a very large one.
#include <benchmark/benchmark.h>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"
#include "compiler/plan/text.h"

namespace shardc {
namespace {

/// Llama 3 405B's sizes where `large`; else those of the quickstart.
auto RecipeText(bool large, int64_t dp) -> std::string {
  return fmt::format(
      "[model]\nfamily = \"llama\"\nlayers = {}\nhidden = {}\nheads = {}\nkv_heads = {}\nffn = {}\nvocab = {}\nseq = {}\n"
      "[mesh]\ndp = {}\n[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n[optimizer]\nlr = 1e-4\n"
      "[data]\ntokens = [\"tokens.bin\"]\n[batch]\nmicro = 1\n[train]\nsteps = 100\n",
      large ? 126 : 4, large ? 16384 : 128, large ? 128 : 4, large ? 8 : 2, large ? 53248 : 384, large ? 128256 : 256,
      large ? 8192 : 256, dp);
}

auto PlanOf(const std::string& text) -> Plan {
  SourceSet sources;
  Diagnostics diags(&sources);
  const auto recipe = ReadRecipe("bench.toml", text, {}, sources, diags);
  CHECK(recipe.ok(), "{}", RenderText(diags, {}));
  CheckRecipe(*recipe, diags);
  CHECK(!diags.has_errors(), "{}", RenderText(diags, {}));
  auto plan = Compile(*recipe, {}, diags);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

auto Compiles(benchmark::State& state) -> void {
  const std::string text = RecipeText(state.range(0) != 0, state.range(1));
  int64_t ops = 0;
  for (auto _ : state) {
    ops = std::ssize(PlanOf(text).section(SectionKind::Step).ops);
  }
  state.counters["step_ops"] = static_cast<double>(ops);
}
BENCHMARK(Compiles)->ArgNames({"large", "dp"})->Args({0, 2})->Args({1, 512})->Args({1, 16384})->Unit(benchmark::kMillisecond);

auto Prints(benchmark::State& state) -> void {
  const Plan plan = PlanOf(RecipeText(state.range(0) != 0, 512));
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = PrintPlan(plan).size();
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}
BENCHMARK(Prints)->ArgName("large")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardc
