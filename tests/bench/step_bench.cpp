// Step time: whole steps of a small Llama on 2 ranks of one compute thread each, as threads of this process; and of one
// rank with several threads, alone and beside a process that keeps one core busy, in turn.
#include <benchmark/benchmark.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

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
            const char* recompute, int64_t ranks = 2, int64_t threads = 1, const char* compute = "fp32") -> Plan {
  const std::string text = fmt::format(
      "[model]\nfamily = \"llama\"\nlayers = {}\nhidden = {}\nheads = 8\nkv_heads = 4\nffn = {}\nvocab = {}\nseq = "
      "256\n"
      "[mesh]\ndp = {}\n[recompute]\npolicy = \"{}\"\n[[init.rule]]\nmatch = \"*\"\nvalue = \"normal(0, 0.02)\"\n"
      "[optimizer]\nlr = 1e-4\n[data]\ntokens = [\"tokens.u8\"]\nformat = \"u8\"\n[batch]\nmicro = {}\n"
      "[train]\nsteps = 1000\n[run]\nthreads = {}\n[precision]\ncompute = \"{}\"\n",
      layers, hidden, ffn, vocab, ranks, recompute, micro, threads, compute);
  SourceSet sources;
  Diagnostics diags(&sources);
  const auto recipe = ReadRecipe(folder + "/bench.toml", text, {}, sources, diags);
  CHECK(recipe.ok(), "{}", RenderText(diags, {}));
  auto plan = Compile(*recipe, {}, diags);
  CHECK(plan.ok(), "{}", plan.error().message);
  return *std::move(plan);
}

/// Begins a run of the plan, ranks as threads, and has each continue with `steps`.
auto OnRanks(const Plan& plan, const std::string& folder, const std::function<Status(RankRunner&, int64_t rank)>& steps)
    -> void {
  LaunchOptions options;
  options.run_dir = folder + "/run";
  const auto code = LaunchThreads(plan, options, [&](RankContext& context) -> ErrorOr<ExitCode> {
    auto runner = RankRunner::Create(context);
    if (!runner) {
      return runner.error();
    }
    RETURN_IF_ERROR((*runner)->Begin());
    RETURN_IF_ERROR(steps(**runner, context.rank));
    return ExitCode::Ok;
  });
  CHECK(code.ok(), "{}", code.error().message);
  CHECK(*code == ExitCode::Ok, "exit code {}", static_cast<int>(*code));
}

/// Takes `count` steps, and adds what each took to `seconds` unless that is null.
auto TakeSteps(RankRunner& runner, int count, std::vector<double>* seconds) -> Status {
  for (int i = 0; i < count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    RETURN_IF_ERROR(runner.Step());
    if (seconds != nullptr) {
      seconds->push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  return Success{};
}

/// Median of `count` steps of rank 0, in seconds, two steps before them left out.
auto MedianStep(const Plan& plan, const std::string& folder, int count) -> double {
  std::vector<double> seconds;
  OnRanks(plan, folder, [&](RankRunner& runner, int64_t rank) -> Status {
    RETURN_IF_ERROR(TakeSteps(runner, 2, nullptr));
    return TakeSteps(runner, count, rank == 0 ? &seconds : nullptr);
  });
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

/// A process that computes and never waits.
class BusyNeighbour {
 public:
  BusyNeighbour() : pid_(fork()) {
    CHECK(pid_ >= 0, "fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        std::atomic_signal_fence(std::memory_order_seq_cst);
      }
    }
  }
  BusyNeighbour(const BusyNeighbour&) = delete;
  ~BusyNeighbour() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

auto MeanMillisecondsOf(const std::vector<double>& seconds) -> double {
  return 1e3 * std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

/// Rounds of some steps alone and as many beside the neighbour. The counters are means over all steps.
auto Neighbour(benchmark::State& state, int64_t threads, const char* compute) -> void {
  constexpr int Rounds = 4;
  constexpr int StepsOfRound = 8;
  const Workplace workplace;
  const Plan plan = PlanOf(workplace.path(), 4, 256, 768, 4096, 4, "none", 1, threads, compute);
  std::vector<double> alone;
  std::vector<double> beside;
  for (auto _ : state) {
    OnRanks(plan, workplace.path(), [&](RankRunner& runner, int64_t) -> Status {
      RETURN_IF_ERROR(TakeSteps(runner, StepsOfRound, nullptr));
      for (int round = 0; round < Rounds; ++round) {
        RETURN_IF_ERROR(TakeSteps(runner, StepsOfRound, &alone));
        const BusyNeighbour neighbour;
        RETURN_IF_ERROR(TakeSteps(runner, StepsOfRound, &beside));
      }
      return Success{};
    });
  }
  state.counters["alone_ms"] = MeanMillisecondsOf(alone);
  state.counters["beside_ms"] = MeanMillisecondsOf(beside);
  state.counters["ratio"] = MeanMillisecondsOf(beside) / MeanMillisecondsOf(alone);
}
BENCHMARK_CAPTURE(Neighbour, one_thread_fp32, 1, "fp32")->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(Neighbour, two_threads_fp32, 2, "fp32")->Iterations(1)->Unit(benchmark::kSecond);
BENCHMARK_CAPTURE(Neighbour, two_threads_bf16, 2, "bf16")->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace shardc
