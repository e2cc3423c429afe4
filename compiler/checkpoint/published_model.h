// A model of Hugging Face as a checkpoint: config.json, and model.safetensors or the files that
// model.safetensors.index.json lists. A manifest is made of their headers; no tensor is read.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// Returns true if a directory has an entry of this name, whatever it is.
auto HasEntry(const Descriptor& directory, const std::string& name) -> bool;

/// Returns the text of a small file of a model, which has to be a regular one.
auto ReadModelText(const Descriptor& directory, const std::string& name) -> ErrorOr<std::string>;

/// Adds a file and its tensors to a manifest, by the file's header. Errors: as below.
auto AddWeights(const Descriptor& directory, const std::string& name, Manifest& manifest) -> Status;

/// Reads config.json, the index and all headers: each tensor is in one file and in the index, each file is there, and
/// types are those of config.json. Buffers are left out. Errors: ExitCode::Checkpoint, with file or tensor and remedy.
auto ReadPublishedModel(const Descriptor& directory) -> ErrorOr<Manifest>;

}  // namespace shardc
