// Writes checkpoints: every rank its own file into a directory with a temporary name, rank 0 the manifest; one rename
// makes it a checkpoint. Before the rename the old ones stand; after it all ranks are told. Collective over all ranks.
//
// Protocol: (a) rank 0 makes step-N.tmp-<run id>~<tag of the lease> and tells the others; (b) each rank writes its
// file, hashing each block that it writes, fsync, close, and the list of digests in the same way; (c) sizes, digests
// and failures are gathered; (d) rank 0 writes manifest.json.tmp, fsync, rename; (e) fsync of the directory; (f) rename
// to step-N, fsync of the parent; (g) the outcome goes to all; (h) older checkpoints beyond `keep` are removed. Rank 0
// looks whether the directory is still this run's before (a), (c), (f) and (h); what bears the name step-N before (f)
// is moved aside.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/lease.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/plan.h"
#include "runtime/checkpoint/left_to_base.h"
#include "runtime/control/rank_control.h"

namespace shardc {

struct CheckpointSave;

struct CheckpointWriterOptions {
  /// Both outlive the writer.
  const Plan* plan = nullptr;
  RankControl* control = nullptr;
  std::string plan_hash;
  /// Where checkpoints go; empty: the plan's run.checkpoint_dir.
  std::string checkpoint_dir;
  /// TokenReader::Fingerprint().
  std::string data_fingerprint;
  /// TokenReader::SourceFingerprints(). Of a mixture.
  std::vector<std::string> source_fingerprints;
  /// Digests of the token files, as in ManifestData.
  std::vector<std::string> data_digests;
  /// A manifest that is larger is not committed.
  int64_t max_manifest_bytes = MaxManifestBytes;
  /// That the run began from, where it began from one.
  ManifestSeed seed;
  /// Parameters that no file of the checkpoints holds.
  LeftToBase left_to_base;
  Fs* fs = &PosixFs();
};

/// Bytes [begin, begin + bytes) of a rank's slice, as memory of the host; valid until the next call.
using SliceReader = std::function<ErrorOr<const std::byte*>(int64_t begin, int64_t bytes)>;

class CheckpointWriter {
 public:
  explicit CheckpointWriter(CheckpointWriterOptions options);
  ~CheckpointWriter();

  /// The seed that the run began from, as its checkpoint says. Before the first save.
  auto set_seed(ManifestSeed seed) -> void { options_.seed = std::move(seed); }

  /// Sets what checkpoints leave to the base of the run. Before the first save.
  auto set_left_to_base(LeftToBase left) -> void { options_.left_to_base = std::move(left); }

  /// Saves continue for as long as this lease is still its owner's. For rank 0; it outlives the writer.
  auto UseLease(const Lease* lease) -> void { lease_ = lease; }

  /// Whether the manifest will be small enough to be read again. The same for all saves, so that a run can ask before
  /// its first step. Errors: ExitCode::DoesNotFit. Cost: that of making a manifest, once.
  auto CheckManifestSize() -> Status;

  /// Opens the checkpoint of `step` completed steps. `state`: every scalar of kind State, by its name. `recent_losses`:
  /// those that the next losses are judged by, oldest first.
  /// Errors: the same on all ranks.
  auto Begin(int64_t step, const std::map<std::string, double>& state, const std::vector<double>& recent_losses = {})
      -> Status;

  /// Writes the owned segments of one state vector. `read` gives the rank's slice. In the order of the save section.
  /// A failure is kept for Commit, which tells all ranks, so that none is left waiting.
  /// Requires: between Begin and Commit.
  auto AddShard(SubVectorId sub_vector, StateRole role, const SliceReader& read) -> void;

  /// Errors: the same on all ranks, naming the rank and what failed: the checkpoint does not exist, older ones stand.
  /// (With "durability unknown" it exists, but may vanish with a power loss.)
  auto Commit() -> Status;

  /// Path of the last checkpoint committed by this writer; empty before.
  auto last_path() const -> const std::string& { return last_path_; }
  /// Not failures: what was moved aside, an old checkpoint that could not be removed. Rank 0 only. Cleared by Begin.
  auto warnings() const -> const std::vector<std::string>& { return warnings_; }

 private:
  /// What a rank wrote.
  struct Written {
    int64_t bytes = 0;
    /// The digest of the list of digests.
    DigestBytes digest{};
  };

  auto CheckOwner() const -> Status;
  /// "; ..." where a save failed and the directory is another's by now, which clears what it finds under way: the
  /// cause.
  auto CauseInOwner(const std::string& told) const -> std::string;
  auto CheckBytes(int64_t manifest_bytes) const -> Status;
  /// The final name is that of a checkpoint of `run_id`.
  auto OtherRun(const std::string& run_id) const -> Error;
  auto MakeTemporary() -> Status;
  auto CreateFile() -> Status;
  auto Write(const void* data, int64_t bytes) -> Status;
  auto WritePieces(SubVectorId sub_vector, StateRole role, const SliceReader& read) -> Status;
  auto CloseFile() -> ErrorOr<Written>;
  /// Writes the digests of the file's blocks. Returns their digest.
  auto WriteBlockDigests() -> ErrorOr<DigestBytes>;
  auto MakeManifest(const std::vector<Written>& written) const -> Manifest;
  auto Publish(const std::vector<Written>& written) -> Status;
  /// Moves what bears the final name aside. Returns where to; "" if nothing was there. Errors: it is another run's.
  auto FreeFinalName() -> ErrorOr<std::string>;
  /// Undoes that.
  auto PutBack(const std::string& aside) const -> void;
  auto Retire() -> void;

  CheckpointWriterOptions options_;
  const Lease* lease_ = nullptr;
  bool manifest_fits_ = false;
  /// The save under way.
  std::unique_ptr<CheckpointSave> save_;
  std::string last_path_;
  std::vector<std::string> warnings_;
};

}  // namespace shardc
