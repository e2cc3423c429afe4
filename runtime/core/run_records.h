// What rank 0 puts on record while a run continues: what it began from, its curve, its saves. All of it goes into
// the run directory that the launch holds open; if that directory is gone, the next record ends the run.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "compiler/base/machine_rows.h"
#include "compiler/plan/init_record.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/find_newest.h"
#include "runtime/core/rank_main.h"
#include "runtime/core/run_report.h"
#include "runtime/metrics/metrics_writer.h"
#include "runtime/record/attempt.h"
#include "runtime/record/product_record.h"

namespace shardc {

/// State that a launch began its training from.
struct BegunRun {
  /// The number of completed steps.
  int64_t step = 0;
  AttemptStart start;
  /// After a first start: what was drawn.
  std::optional<InitRecord> drawn;
  /// Manifests of the seed and of the adapter beside it; empty if no parameters were loaded from one.
  CheckpointReader::Records seed;
};

class RunRecords {
 public:
  /// Keeps the records of a launch. `checkpoint_dir`: the folder in which it looks for checkpoints, and saves.
  RunRecords(const RankContext* context, std::string checkpoint_dir);

  /// Compares the checkpoint that was found with the last save on record, before anything is changed. What is to be
  /// told of it; empty where nothing is. Errors: ExitCode::Checkpoint if there is no checkpoint, though a save is on
  /// record.
  auto CompareWithSaves(const std::optional<CheckpointInfo>& found) const -> ErrorOr<std::string>;

  /// Compares card, driver and libraries with those of the attempt that saved last. Returns a line for people; empty if
  /// nothing differs, or on CPUs.
  auto CompareVersions() const -> std::string;

  auto versions() const -> const std::map<std::string, std::string>& { return versions_; }
  /// Returns the row of the card; null on CPUs, and if no row is that of the card.
  auto machine() const -> const MachineRow*;

  /// Reads the algorithms of products that an earlier launch chose, before ops are bound. Returns a line for people if
  /// they cannot be used; empty otherwise.
  auto ReadAlgorithms() -> std::string;
  /// Takes the record of a launch that tunes, before ops are bound.
  auto TakeProducts(ProductRecord products) -> void;
  auto products() const -> const ProductRecord& { return products_; }
  /// Returns the algorithms of products, which binding adds to.
  auto algorithms() -> std::map<std::string, std::string>* { return &products_.algorithms; }
  /// Checks that the file of `--tune=FILE` had an algorithm for each product to which ops were bound. Errors:
  /// Environment if it lacked one, or the library refused one.
  auto CheckTuned() const -> Status;
  /// Returns a line for people if the library refused recorded algorithms when ops were bound; empty otherwise.
  auto RefusedAlgorithms() const -> std::string;

  /// Records what this launch begins from, and opens the metrics, cut back to the step that the launch begins at.
  auto Begin(const BegunRun& begun) -> Status;
  auto PutMemory(const DeviceUse& use) const -> Status;
  auto WriteStep(const StepMetrics& metrics) -> Status;
  auto WriteEval(int64_t step, double eval_loss, const std::vector<HeadLoss>& terms, const LineTime& time) -> Status;
  /// Checks before a save that the run directory is there, and is still this launch's.
  auto CheckOwned() const -> Status;
  /// Records a save after its commit.
  auto PutSave(int64_t step, const std::string& path) const -> Status;

 private:
  /// Returns what the bits of results depend on: the versions, and a digest of the algorithms of products.
  auto WithDigest() const -> std::map<std::string, std::string>;

  const RankContext& context_;
  std::string checkpoint_dir_;
  /// The card, and the versions of its driver and libraries; empty on CPUs.
  std::map<std::string, std::string> versions_;
  ProductRecord products_;
  /// The record in gemm.json; empty if it was not for this machine.
  ProductRecord recorded_;
  /// Algorithms that were there before ops were bound.
  std::map<std::string, std::string> taken_;
  std::unique_ptr<MetricsWriter> metrics_;
};

}  // namespace shardc
