// Step time: whole steps of a small Llama on 2 ranks of one compute thread each, as threads of this process.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "compiler/check/check_recipe.h"
#include "compiler/passes/pipeline.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"

namespace shardc {
namespace {

/// A folder with 1 MiB of tokens in it, removed at the end.
class Workplace {
 public:
  Workplace() : path_(std::filesystem::temp_directory_path() / "shardc-step-bench") {
    std::filesystem::create_directories(path_);
    std::ofstream tokens(path_ / "tokens.u8", std::ios::binary);
    for (uint32_t i = 0; i < (1U << 20); ++i) {
      tokens.put(static_cast<char>((i * 2654435761U) >> 24));
    }
  }
  ~Workplace() { std::filesystem::remove_all(path_); }
  auto path() const -> std::string { return path_.string(); }

 private:
  std::filesystem::path path_;
};

auto PlanOf(const std::string& folder, int64_t layers, int64_t hidden, int64_t ffn, int64_t vocab, int64_t micro,
            const char* recompute) -> Plan {
  const std::string text = fmt::format(
      "[model]\nfamily = \"llama\"\nlayers = {}\nhidden = {}\nheads = 8\nkv_heads = 4\nffn = {}\nvocab = {}\nseq = "
      "256\n"
      "[mesh]\ndp = 2\n[recompute]\npolicy = \"{}\"\n[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n"
      "[optimizer]\nlr = 1e-4\n[data]\ntokens = [\"tokens.u8\"]\nformat = \"u8\"\n[batch]\nmicro = {}\n"
      "[train]\nsteps = 1000\n[run]\nthreads = 1\n",
      layers, hidden, ffn, vocab, recompute, micro);
  SourceSet sources;
  Diagnostics diags(&sources);
  const auto recipe = ReadRecipe(folder + "/bench.toml", text, {}, sources, diags);
  CHECK(recipe.ok(), "{}", RenderText(diags, {}));
  auto plan = Compile(*recipe, {}, diags);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

/// Median of `count` steps of rank 0, in seconds, two steps before them left out.
auto MedianStep(const Plan& plan, const std::string& folder, int count) -> double {
  std::vector<double> seconds;
  LaunchOptions options;
  options.run_dir = folder + "/run";
  const auto code = LaunchThreads(plan, options, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    const auto begun = (*runner)->Begin();
    if (!begun) {
      return begun.error();
    }
    for (int i = 0; i < count + 2; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto halt = (*runner)->Step();
      if (!halt) {
        return halt.error();
      }
      if (context.rank == 0 && i >= 2) {
        seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
      }
    }
    return ExitCode::Ok;
  });
  CHECK(code.ok(), "{}", code.error().message);
  std::nth_element(seconds.begin(), seconds.begin() + count / 2, seconds.end());
  return seconds[static_cast<size_t>(count / 2)];
}

auto Steps(benchmark::State& state, int64_t layers, int64_t hidden, int64_t ffn, int64_t vocab, int64_t micro,
           const char* recompute) -> void {
  const Workplace workplace;
  const Plan plan = PlanOf(workplace.path(), layers, hidden, ffn, vocab, micro, recompute);
  for (auto _ : state) {
    state.SetIterationTime(MedianStep(plan, workplace.path(), 8));
  }
  int64_t parameters = 0;
  for (const Parameter& parameter : plan.parameters) {
    parameters += parameter.num_elements();
  }
  state.counters["parameters"] = static_cast<double>(parameters);
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(plan.run.tokens_per_step), benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_CAPTURE(Steps, quickstart, 4, 128, 384, 256, 8, "none")
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Steps, llama_5m, 4, 256, 768, 4096, 4, "none")
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Steps, llama_5m_recompute, 4, 256, 768, 4096, 4, "full")
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardc
