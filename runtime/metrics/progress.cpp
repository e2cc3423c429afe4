#include "runtime/metrics/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "compiler/base/printable.h"
#include "compiler/base/text/numbers_and_lines.h"

namespace shardc {

static auto IsTerminal(std::FILE* out) -> bool {
  const char* term = std::getenv("TERM");
  return isatty(fileno(out)) == 1 && term != nullptr && std::string_view(term) != "dumb";
}

Progress::Progress(int64_t steps, int64_t log_every, const RunLog& log, std::FILE* out)
    : Progress(steps, log_every, log, out, IsTerminal(out)) {}

Progress::Progress(int64_t steps, int64_t log_every, const RunLog& log, std::FILE* out, bool terminal)
    : steps_(steps), log_every_(std::max<int64_t>(1, log_every)), log_(log), out_(out), terminal_(terminal) {}

/// Returns the utilisation of a step as text, and that with what it computes again if it does.
static auto UtilisationText(const StepMetrics& metrics) -> std::string {
  if (!metrics.mfu) {
    return "";
  }
  const bool recomputes = metrics.hfu > metrics.mfu;
  return fmt::format("MFU {:.1f} %{}  ", *metrics.mfu * 100,
                     recomputes ? fmt::format(", HFU {:.1f} %", *metrics.hfu * 100) : "");
}

auto Progress::Step(const StepMetrics& metrics, Seconds due) -> void {
  constexpr double Weight = 0.1;
  step_ms_ = step_ms_ == 0 ? metrics.step_ms : (1 - Weight) * step_ms_ + Weight * metrics.step_ms;
  const bool is_logged = metrics.step % log_every_ == 0 || metrics.step == steps_;
  if (!terminal_ && !is_logged) {
    return;
  }
  // A step that is not skipped has a loss of NaN only if no position has a target.
  const bool has_loss = !std::isnan(metrics.loss) || !metrics.skipped.empty();
  const double seconds_left =
      static_cast<double>(std::max<int64_t>(0, steps_ - metrics.step)) * step_ms_ / 1000 + due.value;
  const std::string line =
      fmt::format("step {}/{}  loss {}  gradient norm {:.3f}  {:.0f} tokens/s  {}{} left", metrics.step, steps_,
                  has_loss ? LossText(metrics.loss) : "none", metrics.grad_norm, metrics.tokens_per_s,
                  UtilisationText(metrics), FormatDuration(seconds_left));
  if (terminal_) {
    Move(line);
  } else {
    PrintLog(out_, line + "\n");
  }
  if (is_logged) {
    log_.Keep(line + "\n");
  }
}

auto Progress::Evaluating(int64_t done, int64_t all) -> void {
  if (terminal_) {
    Move(fmt::format("evaluating {} of {}", Grouped(done), Counted(all, "sample")));
  }
}

auto Progress::Eval(int64_t step, std::optional<double> eval_loss) -> void {
  Note(fmt::format("step {}/{}  {}", step, steps_,
                   eval_loss ? "validation loss " + LossText(*eval_loss)
                             : "no validation loss: no position of the held-out samples has a target"));
}

auto Progress::Note(const std::string& text) -> void {
  Clear();
  PrintLog(out_, Printable(text) + "\n");
  log_.Keep(text + "\n");
}

auto Progress::Finish() -> void {
  if (line_open_) {
    PrintLog(out_, "\n");
    line_open_ = false;
  }
}

auto Progress::Move(const std::string& line) -> void {
  Clear();
  PrintLog(out_, line);
  line_open_ = true;
}

auto Progress::Clear() -> void {
  if (line_open_) {
    // To the line's start, and clear to its end.
    PrintLog(out_, "\r\x1b[K");
    line_open_ = false;
  }
}

auto LossText(double loss) -> std::string { return std::isnan(loss) ? "nan" : fmt::format("{:.4f}", loss); }

auto FormatDuration(double seconds) -> std::string {
  const auto total = static_cast<int64_t>(std::llround(std::max(0.0, seconds)));
  if (total >= 3600) {
    return fmt::format("{}h {:02}m", total / 3600, total % 3600 / 60);
  }
  if (total >= 60) {
    return fmt::format("{}m {:02}s", total / 60, total % 60);
  }
  return fmt::format("{}s", total);
}

}  // namespace shardc
