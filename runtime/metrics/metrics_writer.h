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
struct LossTerm {
  std::string name;
  double value = 0;
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
  /// Where the loss has several.
  std::vector<LossTerm> terms;
};

/// {"step":...,"eval_loss":...}, and the terms; without a line end.
auto EvalLine(int64_t step, double eval_loss, const std::vector<LossTerm>& terms = {}) -> std::string;

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

  /// {"step":...,"loss":...,"grad_norm":...,"lr":...,"step_ms":...,"tokens_per_s":...}, and the terms after these; a
  /// number that is not finite becomes null: the mean of a term without a target in this step.
  auto Write(const StepMetrics& metrics) -> Status;
  /// EvalLine.
  auto WriteEval(int64_t step, double eval_loss, const std::vector<LossTerm>& terms = {}) -> Status;

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
