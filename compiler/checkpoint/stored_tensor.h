// Tensors of a checkpoint, read element by element from the files of the ranks that saved it.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/checkpoint_file.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// The files of a checkpoint, opened when they are needed.
class CheckpointFiles {
 public:
  /// Opens nothing yet. `directory` and `manifest` outlive it.
  CheckpointFiles(const Descriptor* directory, const Manifest* manifest)
      : directory_(*directory), manifest_(*manifest) {}

  /// Returns a file. It stays open until MostOpen others were asked for. Errors: ExitCode::Checkpoint, naming the file.
  auto Open(const std::string& name) -> ErrorOr<CheckpointFile*>;

 private:
  static constexpr size_t MostOpen = 64;

  const Descriptor& directory_;
  const Manifest& manifest_;
  /// The one that was asked for last comes first.
  std::list<std::pair<std::string, std::unique_ptr<CheckpointFile>>> open_;
  KeptBlocks kept_;
};

/// One parameter of a checkpoint, or one of its moments.
class StoredTensor {
 public:
  /// Requires: the manifest has the tensor, and its pieces cover it (CheckCover). All outlive the tensor.
  StoredTensor(CheckpointFiles* files, const Manifest& manifest, const std::string& name,
               StateRole role = StateRole::Parameter);

  auto num_elements() const -> int64_t { return num_elements_; }
  auto dtype() const -> DType { return dtype_; }
  /// Writes elements [begin, end) to `out`, as they are stored. Errors: ExitCode::Checkpoint.
  auto Read(int64_t begin, int64_t end, std::byte* out) -> Status;

 private:
  CheckpointFiles& files_;
  std::string stored_name_;
  int64_t num_elements_;
  DType dtype_;
  struct Part {
    BoxInterval interval;
    std::string file;
  };
  /// Reads elements [begin, begin + count) of a part.
  auto ReadPart(const Part& part, int64_t begin, int64_t count, std::byte* out) -> Status;

  std::vector<Part> parts_;
};

}  // namespace shardc
