// metrics.jsonl: one JSON object a line, appended with one write each, numbers with full precision.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

constexpr const char* MetricsName = "metrics.jsonl";
constexpr const char* DroppedMetricsName = "metrics_dropped.jsonl";

/// The mean of one term of the loss by itself, as the metric is called: "loss_image".
struct HeadLoss {
  std::string name;
  double value = 0;
};

/// When a line was written.
struct LineTime {
  /// UTC, "2026-11-23T00:10:07Z".
  std::string utc;
  /// Since the launch began.
  double elapsed_s = 0;
};

struct StepMetrics {
  /// Steps completed, this one included.
  int64_t step = 0;
  /// Nats a token.
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  double step_ms = 0;
  double tokens_per_s = 0;
  /// Tokens trained since step 0, restarts included.
  int64_t tokens = 0;
  /// Targets of the model's own head in this step, where their number varies.
  std::optional<int64_t> targets;
  LineTime time;
  /// Of rank 0: what is resident now, and what its arenas reserve.
  int64_t resident_bytes = 0;
  int64_t arena_bytes = 0;
  /// Model FLOPs and hardware FLOPs utilisation, as fractions of the peak, where that is known.
  std::optional<double> mfu;
  std::optional<double> hfu;
  /// Why no update was made: "nonfinite", "spike"; empty if one was.
  std::string skipped;
  /// Where the loss has several.
  std::vector<HeadLoss> terms;
};

/// {"step":...,"eval_loss":...}, the time where it is given, and the terms; without a line end.
auto EvalLine(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms = {},
              const std::optional<LineTime>& time = {}) -> std::string;

class MetricsWriter {
 public:
  /// Opens metrics.jsonl of an open run directory for appending, after taking out the lines of steps after
  /// `restored_step` (0 at a first start), and those that are no object with a step (a half-written last one): it stays
  /// one curve. What is taken out lies in `dropped`, as metrics_dropped.jsonl, before it is gone here.
  /// Errors: a name is a link or no regular file. A file that has another name besides is not changed under that one.
  static auto Open(const Descriptor& run_dir, int64_t restored_step, const Descriptor& dropped)
      -> ErrorOr<std::unique_ptr<MetricsWriter>>;
  MetricsWriter(const MetricsWriter&) = delete;
  auto operator=(const MetricsWriter&) -> MetricsWriter& = delete;

  /// The fields of docs/metrics.md, the terms last; a number that is not finite becomes null: the mean of a term
  /// without a target in this step.
  auto Write(const StepMetrics& metrics) -> Status;
  /// EvalLine.
  auto WriteEval(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms = {},
                 const std::optional<LineTime>& time = {}) -> Status;

 private:
  MetricsWriter(const Descriptor* run_dir, Descriptor file, FileStatus status)
      : run_dir_(*run_dir), file_(std::move(file)), status_(status) {}
  /// Errors: the name stands for another file now.
  auto Append(const std::string& line) -> Status;

  const Descriptor& run_dir_;
  Descriptor file_;
  FileStatus status_;
};

}  // namespace shardc
