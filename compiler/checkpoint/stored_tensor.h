// Tensors of a checkpoint, read element by element from the files of the ranks that saved it.
#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/checkpoint/safetensors.h"

namespace shardc {

/// The files of a checkpoint, opened when they are needed.
class CheckpointFiles {
 public:
  /// Opens nothing yet. `directory` and `manifest` outlive it.
  CheckpointFiles(const Descriptor* directory, const Manifest* manifest)
      : directory_(*directory), manifest_(*manifest) {}

  struct Opened {
    Descriptor file;
    int64_t data_begin = 0;
    std::map<std::string, Interval> tensors;
  };
  /// Returns a file with where its tensors lie, whose size is that of the manifest. It stays open until MostOpen others
  /// were asked for. Errors: ExitCode::Checkpoint, naming the file.
  auto Open(const std::string& name) -> ErrorOr<const Opened*>;

 private:
  static constexpr size_t MostOpen = 64;

  const Descriptor& directory_;
  const Manifest& manifest_;
  /// The one that was asked for last is first.
  std::list<std::pair<std::string, Opened>> open_;
};

/// One parameter of a checkpoint.
class StoredTensor {
 public:
  /// Requires: the manifest has the tensor, and its pieces cover it (CheckCover). All outlive the tensor.
  StoredTensor(CheckpointFiles* files, const Manifest& manifest, const std::string& name);

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
  std::vector<Part> parts_;
};

}  // namespace shardc
