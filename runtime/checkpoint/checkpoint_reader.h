// Finds checkpoints and reads them, whatever mesh wrote them: a rank asks for elements of logical tensors and gets them
// from the pieces that hold them. Everything is checked before the first element is given out.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"
#include "runtime/checkpoint/fs.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/comm/communicator.h"

namespace shardc {

struct CheckpointInfo {
  /// Of the directory step-N.
  std::string path;
  int64_t step = 0;
  std::string run_id;
  std::string plan_hash;
  /// Directories that bear a checkpoint's name and are none, with the reason: to be told to the user.
  std::vector<std::string> skipped;
  /// Leftovers of saves that did not come to their commit.
  std::vector<std::string> abandoned;
};

/// The checkpoint of `run_id` with the highest step (by its manifest, never by time) in `dir`; none where `dir` is
/// missing or holds none. Errors: ExitCode::Checkpoint where directories with a checkpoint's name are there and none of
/// them is a whole checkpoint of this run: a run does not start from scratch over the remains of another.
auto FindNewest(const std::string& dir, const std::string& run_id, Fs& fs = PosixFs())
    -> ErrorOr<std::optional<CheckpointInfo>>;

/// Removes what saves of `run_id` left under temporary names. Errors: what could not be removed.
auto RemoveAbandoned(const std::string& dir, const std::string& run_id, Fs& fs = PosixFs()) -> Status;

/// Collective: rank 0 removes leftovers and looks; all get its answer or its error. (`skipped`, `abandoned`: rank 0
/// only.)
auto ChooseNewest(const std::string& dir, const std::string& run_id, Communicator& communicator, Fs& fs = PosixFs())
    -> ErrorOr<std::optional<CheckpointInfo>>;

/// Resume: parameters, moments, scalars, the data's position. Parameters: for evaluation; moments and data do not
/// matter.
enum class ReadPurpose : uint8_t { Resume, Parameters };

struct CheckpointReaderOptions {
  std::string path;
  /// Outlives the reader.
  const Plan* plan = nullptr;
  /// TokenReader::Fingerprint(). For Resume.
  std::string data_fingerprint;
  ReadPurpose purpose = ReadPurpose::Resume;
  /// With it Open is collective: the ranks share the work of checking digests, and agree on the outcome. Without it
  /// this process checks all files.
  Communicator* communicator = nullptr;
  Fs* fs = &PosixFs();
};

class CheckpointReader {
 public:
  /// Checks format version, model identity, data, tensors (both ways), exact cover, file sizes and digests.
  /// Errors: ExitCode::Checkpoint, naming what differs: "checkpoint of another model: layers is 4 there, 6 here".
  static auto Open(CheckpointReaderOptions options) -> ErrorOr<std::unique_ptr<CheckpointReader>>;
  ~CheckpointReader();

  auto manifest() const -> const Manifest& { return manifest_; }
  auto step() const -> int64_t { return manifest_.step; }
  /// Value of a scalar of kind State. Errors: not in the checkpoint.
  auto ReadScalar(std::string_view name) const -> ErrorOr<double>;
  /// A stretch of a logical tensor, whatever pieces it was saved in.
  auto ReadSegment(std::string_view name, StateRole role, const BoxRange& wanted, DType dtype, void* out) -> Status;

 private:
  struct ShardFile;

  explicit CheckpointReader(CheckpointReaderOptions options);
  auto Load() -> Status;
  auto CheckAgainstPlan() const -> Status;
  auto CheckFiles(int64_t part, int64_t num_parts) -> Status;
  auto CheckFile(const std::string& name, const ManifestFile& expected) -> Status;
  /// Elements [begin, begin + count) of a piece.
  auto ReadRun(const std::string& stored, const Piece& piece, int64_t begin, int64_t count, DType dtype, void* out)
      -> Status;
  auto FileNamed(const std::string& name) -> ErrorOr<ShardFile*>;

  CheckpointReaderOptions options_;
  Manifest manifest_;
  Descriptor directory_;
  std::map<std::string, std::unique_ptr<ShardFile>, std::less<>> files_;
};

}  // namespace shardc
