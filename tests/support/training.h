// A tiny training to run with the real programs: a folder with a recipe and a token file, and what its runs leave
// there.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace shardc {

/// "section.key=value", as `--set` takes them.
using Sets = std::vector<std::string>;

/// Two blocks of width 32, sequences of 32 bytes, 12 a step, on 2 ranks of one thread: a step takes a millisecond.
auto TinyRecipe() -> std::string_view;

/// Sets that make a step take about 100 ms, so that a signal finds the run in the middle of one.
auto SlowSteps() -> Sets;

/// An llm.c file of these ids.
auto WriteBin(const std::string& path, const std::vector<uint16_t>& ids) -> void;
/// Words in random order, as bytes: easier than noise, so that the loss falls in a few steps.
auto EasyTokens(int64_t count) -> std::vector<uint16_t>;
/// The id that ends a document of DocumentTokens.
constexpr uint16_t DocumentEnd = 0;
/// Returns such tokens in documents of 1 to 30, each with DocumentEnd at its end. `state`: of their lengths.
auto DocumentTokens(int64_t count, uint32_t state) -> std::vector<uint16_t>;

class Training {
 public:
  /// Writes tiny.toml (TinyRecipe) and tokens.bin. `sets` go with every command.
  explicit Training(Sets sets = {});

  auto path() const -> const std::string& { return folder_.path(); }
  auto operator/(const std::string& name) const -> std::string { return folder_ / name; }

  /// `shardc COMMAND tiny.toml --set ...`.
  auto Command(const std::string& command, const std::vector<std::string>& arguments = {}) const
      -> std::vector<std::string>;
  /// `shardc run tiny.toml --run-dir DIR`; `run` names a folder of this one.
  auto RunCommand(const std::string& run = "run", const Sets& more_sets = {}) const -> std::vector<std::string>;
  auto Run(const std::string& run = "run", const Sets& more_sets = {}) const -> Outcome {
    return RunProcess(RunCommand(run, more_sets));
  }
  /// The plan, compiled in this process. A recipe that is rejected ends the test.
  auto Compile(const Sets& more_sets = {}) const -> Plan;
  auto Eval(const std::string& checkpoint) const -> Outcome {
    return RunProcess(Command("eval", {"--checkpoint", checkpoint, "--format", "json"}));
  }

 private:
  TemporaryFolder folder_;
  Sets sets_;
};

struct StepLine {
  int64_t step = 0;
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  double step_ms = 0;
  double tokens_per_s = 0;
};

/// metrics.jsonl of a run directory. Numbers that are null there are NaN here.
struct Metrics {
  std::vector<StepLine> steps;
  std::vector<std::pair<int64_t, double>> evals;
  /// Lines that are neither, and what comes after the last line end.
  std::vector<std::string> others;

  auto last_step() const -> int64_t { return steps.empty() ? 0 : steps.back().step; }
};
auto ReadMetrics(const std::string& run_dir) -> Metrics;

/// Names of the committed checkpoints of a run directory, oldest first.
auto CheckpointsOf(const std::string& run_dir) -> std::vector<std::string>;
/// Names of the saves that are under way, or were when the run was killed.
auto UnfinishedSavesOf(const std::string& run_dir) -> std::vector<std::string>;
/// step-00000012.
auto CheckpointNameOf(int64_t step) -> std::string;

/// Every file under a folder with what it holds.
auto ContentsOf(const std::string& folder) -> std::map<std::string, std::string>;

/// The files of the newest committed checkpoint with what they hold; empty if no checkpoint is committed.
auto NewestCheckpointOf(const std::string& run_dir) -> std::map<std::string, std::string>;

/// Expects the same number of steps, and the same losses, norms and learning rates in each, bit for bit.
auto ExpectSameSteps(const Metrics& metrics, const Metrics& other) -> void;
/// Expects that, the same evaluations, and a newest checkpoint (parameters, moments, manifest) equal byte for byte.
auto ExpectSameRun(const std::string& run_dir, const std::string& other_run_dir) -> void;

}  // namespace shardc
