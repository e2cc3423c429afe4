// What rank 0 puts on record while a run continues: what it began from, its curve, its saves. All of it goes into
// the run directory that the launch holds open; if that directory is gone, the next record ends the run.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/plan/init_record.h"
#include "runtime/checkpoint/find_newest.h"
#include "runtime/core/rank_main.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/record/attempt.h"

namespace shardc {

class RunRecords {
 public:
  /// Keeps the records of a launch. `checkpoint_dir`: the folder in which it looks for checkpoints, and saves.
  RunRecords(const RankContext* context, std::string checkpoint_dir);

  /// Compares the checkpoint that was found with the last save on record, before anything is changed. What is to be
  /// told of it; empty where nothing is. Errors: ExitCode::Checkpoint if there is no checkpoint, though a save is on
  /// record.
  auto CompareWithSaves(const std::optional<CheckpointInfo>& found) const -> ErrorOr<std::string>;

  /// Records what this launch begins from, with the drawn values and the manifest of the seed if there are such. It
  /// then opens the metrics, cut back to the step that the launch begins at.
  auto Begin(const AttemptStart& start, const std::optional<InitRecord>& drawn, const std::string& seed_manifest,
             int64_t begun) -> Status;
  auto WriteStep(const StepMetrics& metrics) -> Status;
  auto WriteEval(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms, const LineTime& time) -> Status;
  /// Checks before a save that the run directory is there, and is still this launch's.
  auto CheckOwned() const -> Status;
  /// Records a save after its commit.
  auto PutSave(int64_t step, const std::string& path) const -> Status;

 private:
  const RankContext& context_;
  std::string checkpoint_dir_;
  std::unique_ptr<MetricsWriter> metrics_;
};

}  // namespace shardc
