// Tensors of a checkpoint, read element by element from the files of the ranks that saved it.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/checkpoint_base.h"
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

  /// Opens the base of the manifest, if it has one, so that tensors in it can be read. Errors: as OpenBaseOf.
  auto OpenItsBase() -> Status;

 private:
  friend class StoredTensor;

  static constexpr size_t MostOpen = 64;

  const Descriptor& directory_;
  const Manifest& manifest_;
  /// The one that was asked for last comes first.
  std::list<std::pair<std::string, std::unique_ptr<CheckpointFile>>> open_;
  KeptBlocks kept_;
  /// The base and its files; null until it is opened.
  std::unique_ptr<OpenBase> base_;
  std::unique_ptr<CheckpointFiles> base_files_;
};

/// One parameter of a checkpoint, or one of its moments.
class StoredTensor {
 public:
  /// Requires: the manifest has the tensor, and its pieces cover it (CheckCover), or the files have opened the base
  /// that it is in. All outlive the tensor.
  StoredTensor(CheckpointFiles* files, const Manifest& manifest, const std::string& name,
               StateRole role = StateRole::Parameter);

  auto num_elements() const -> int64_t { return num_elements_; }
  auto dtype() const -> DType { return dtype_; }
  /// Writes elements [begin, end) to `out`, in the tensor's type. Errors: ExitCode::Checkpoint: also with the last
  /// element of a tensor in the base, if its numbers are not those that the run began from.
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

  /// Reads elements that the base has.
  auto ReadInBase(int64_t begin, int64_t end, std::byte* out) -> Status;

  std::vector<Part> parts_;
  /// Set for a tensor in the base: what it is there, its own name and shape, the tensor that has it, and how much was
  /// read, with its sum.
  std::optional<TensorInBase> in_base_;
  Dims shape_;
  std::unique_ptr<StoredTensor> there_;
  int64_t num_read_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace shardc
