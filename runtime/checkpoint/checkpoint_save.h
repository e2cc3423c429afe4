// A save under way, which the files of the writer share.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/block_digests.h"
#include "runtime/checkpoint/stored_pieces.h"

namespace shardc {

/// The lease's, and an end.
constexpr size_t TagBytes = 9;

/// Comments of the form (a) name steps of the protocol in checkpoint_writer.h.
struct CheckpointSave {
  int64_t step = 0;
  std::map<std::string, double> state;
  std::vector<double> recent_losses;
  std::string final_name;
  std::string temporary_name;
  Descriptor parent;
  Descriptor directory;
  Descriptor file;
  int64_t bytes = 0;
  BlockHasher blocks;
  std::vector<StoredPiece> pieces;
  size_t num_written = 0;
  /// The first thing that went wrong on this rank.
  std::optional<Error> failure;
};

}  // namespace shardc
