// The base of a checkpoint of adapters: the seed that the run began from, whose files have the tensors that the
// checkpoint leaves out.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/seed_contents.h"

namespace shardc {

/// A base whose directory is open.
struct OpenBase {
  std::string path;
  Descriptor directory;
  Manifest manifest;
};

/// Opens the base of a manifest: in `other`, if that is set and holds it, else in the directory that the manifest
/// names. Errors: ExitCode::Checkpoint: the directory is gone, or holds another model; the message has the way on.
/// Requires: the manifest has a base.
auto OpenBaseOf(const Manifest& manifest, const std::string& other = "", Fs& fs = PosixFs()) -> ErrorOr<OpenBase>;

/// Returns elements of a tensor as elements of the base's tensor that has it.
auto InBase(const TensorInBase& in_base, const Dims& shape, BoxInterval elements) -> BoxInterval;

/// Returns an error that names the tensor: its numbers are not those that the run began from.
auto BaseHasChanged(const std::string& base, const std::string& tensor) -> Error;

}  // namespace shardc
