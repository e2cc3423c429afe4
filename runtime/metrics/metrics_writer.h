// metrics.jsonl: one JSON object a line, appended with one write each, numbers with full precision.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"

namespace shardc {

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

class MetricsWriter {
 public:
  /// Opens for appending, after cutting the file back to the lines of steps up to `restored_step` (0 at a first start).
  /// Makes the folder.
  static auto Open(const std::string& path, int64_t restored_step) -> ErrorOr<std::unique_ptr<MetricsWriter>>;
  ~MetricsWriter();
  MetricsWriter(const MetricsWriter&) = delete;
  auto operator=(const MetricsWriter&) -> MetricsWriter& = delete;

  /// {"step":...,"loss":...,"grad_norm":...,"lr":...,"step_ms":...,"tokens_per_s":...}, and the terms behind these; a
  /// number that is not finite becomes null: the mean of a term without a target in this step.
  auto Write(const StepMetrics& metrics) -> Status;
  /// {"step":...,"eval_loss":...}, and the terms.
  auto WriteEval(int64_t step, double eval_loss, const std::vector<LossTerm>& terms = {}) -> Status;

  /// Drops lines of later steps, and lines that are no object with a step (a half-written last one). All or nothing:
  /// the new file takes the old one's place by a rename. A missing file is fine.
  static auto TruncateAfter(const std::string& path, int64_t step) -> Status;

 private:
  MetricsWriter(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  auto Append(const std::string& line) -> Status;

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace shardc
