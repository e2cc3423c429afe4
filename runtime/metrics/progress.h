// What a person sees of a run while it continues: one line that rewrites itself on a terminal, a plain line every
// `log_every` steps elsewhere. On stderr; rank 0 only.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "compiler/base/units.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/metrics/run_log.h"

namespace shardc {

class Progress {
 public:
  /// `steps`: where the run ends. `log` outlives it, and has the plain lines, on a terminal too. `out` is a terminal or
  /// not: isatty, and TERM is not dumb.
  Progress(int64_t steps, int64_t log_every, const RunLog& log, std::FILE* out = stderr);
  Progress(int64_t steps, int64_t log_every, const RunLog& log, std::FILE* out, bool terminal);
  ~Progress() { Finish(); }

  /// Prints a step. `due`: the time of what comes besides steps until the end: evaluations and saves.
  auto Step(const StepMetrics& metrics, Seconds due = {}) -> void;
  /// Shows on a terminal how many samples of an evaluation are done.
  auto Evaluating(int64_t done, int64_t all) -> void;
  /// Prints the loss of an evaluation. `eval_loss`: unset if no position had a target.
  auto Eval(int64_t step, std::optional<double> eval_loss) -> void;
  /// A line of its own, above the moving one.
  auto Note(const std::string& text) -> void;
  /// Ends the moving line.
  auto Finish() -> void;

 private:
  auto Clear() -> void;
  /// Begins the moving line again.
  auto Move(const std::string& line) -> void;

  int64_t steps_;
  int64_t log_every_;
  const RunLog& log_;
  std::FILE* out_;
  bool terminal_;
  bool line_open_ = false;
  /// Moving average, for the time that is left.
  double step_ms_ = 0;
};

/// Returns "2.7183", or "nan" without the sign.
auto LossText(double loss) -> std::string;

/// "3h 05m", "12m 03s", "41s".
auto FormatDuration(double seconds) -> std::string;

}  // namespace shardc
