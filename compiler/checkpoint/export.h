// A checkpoint as a model that transformers and others open: config.json, safetensors files, and an index where there
// are several.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/plan/types.h"

namespace shardc {

struct ExportRequest {
  std::string checkpoint;
  /// The checkpoint's manifest.
  const Manifest* manifest = nullptr;
  /// Path of the directory to make.
  std::string output;
  /// Type of the weights: F32, BF16 or F16. Default: that of all weights in the checkpoint.
  std::optional<DType> type;
  /// Bytes of a file at most, but for one that holds a single tensor.
  int64_t max_file = 5'000'000'000;
  /// Directory whose files of a tokenizer are copied, and whose config.json gives special tokens; empty: none.
  std::string tokenizer;
  /// Adds adapters to the matrices that they are beside: in f32, rounded once to the type that is written.
  bool merges = false;
};

struct ExportResult {
  int64_t num_tensors = 0;
  int64_t num_files = 0;
  int64_t bytes = 0;
  /// The heads of [[loss.head]], which no class of transformers has.
  std::vector<std::string> heads_left_out;
  /// Matrices to which an adapter was added.
  int64_t num_merged = 0;
};

/// Writes the model, without heads of [[loss.head]], under a temporary name, reads it again, and renames it: the
/// directory appears whole or not at all. Memory: 64 MiB, the headers, and a tokenizer.json as objects. Errors: Usage,
/// Checkpoint, Environment; the temporary directory is removed then. What a killed export to the same path left is
/// removed first. A checkpoint of a run of adapters is exported by `merges` alone, and only if that changes
/// an element.
auto ExportModel(const ExportRequest& request) -> ErrorOr<ExportResult>;

}  // namespace shardc
