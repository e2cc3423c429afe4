// The checkpoints of a run, as a rank has to do with them: it owns their directory by a lease, reads one of them and
// writes others.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/checkpoint_writer.h"
#include "runtime/checkpoint/find_newest.h"
#include "runtime/core/bound_rank.h"

namespace shardc {

class RunCheckpoints {
 public:
  /// Returns the directory in which a run looks for checkpoints, and saves.
  static auto DirectoryOf(const RankContext& context) -> std::string;

  /// Takes the rank, which outlives the checkpoints.
  RunCheckpoints(BoundRank* rank, std::string directory);

  /// Makes the writer, before sections are bound. Requires: the rank has opened its tokens.
  auto MakeWriter() -> void;
  /// Takes the lease of the directory, for as long as this object lives. Collective.
  auto Own() -> Status;
  /// Checks on rank 0 that the lease is still this run's. Requires: Own.
  auto CheckLease() const -> Status { return lease_->Check(); }
  /// Returns the run's newest checkpoint in the directory; nothing if the run has none. Collective.
  auto Choose() const -> ErrorOr<std::optional<CheckpointInfo>>;
  /// Opens a checkpoint and binds the section that reads it. Collective.
  auto Open(const std::string& path, ReadPurpose purpose) -> Status;
  /// Opens the seed of the plan, which has one. Collective. Errors: as CheckpointReader::Open.
  auto OpenSeed() -> ErrorOr<std::unique_ptr<CheckpointReader>>;
  /// Checks what the open checkpoint had in its base, once the section has run. Returns what the run's own checkpoints
  /// leave to it. Collective. Errors: as CheckpointReader::SumBase.
  auto SumBase() -> ErrorOr<LeftToBase>;
  /// Closes the files of the checkpoint that is open, once the section has run.
  auto CloseFiles() -> void { reader_->CloseFiles(); }

  auto directory() const -> const std::string& { return directory_; }
  auto writer() -> CheckpointWriter& { return *writer_; }
  /// Returns the manifest of the checkpoint that is open.
  auto manifest() const -> const Manifest& { return reader_->manifest(); }
  /// Returns the path of this run's newest checkpoint; empty if the run has none.
  auto newest() const -> const std::string&;

 private:
  auto OptionsOf(const std::string& path, ReadPurpose purpose) const -> CheckpointReaderOptions;

  BoundRank& rank_;
  std::string directory_;
  std::unique_ptr<CheckpointReader> reader_;
  /// Rank 0's. The writer looks at it.
  std::unique_ptr<Lease> lease_;
  std::unique_ptr<CheckpointWriter> writer_;
  /// The checkpoint that the state came back from.
  std::string restored_from_;
};

}  // namespace shardc
