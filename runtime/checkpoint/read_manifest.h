// The manifest of a checkpoint's directory.
#pragma once

#include <string>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// The text of the manifest of an open checkpoint directory. Errors: none there, no regular file, or too large a one.
auto ReadManifestText(const Descriptor& directory) -> ErrorOr<std::string>;
/// The same, read. Errors: as above, and those of ManifestFromText, with the file's name.
auto ReadManifest(const Descriptor& directory) -> ErrorOr<Manifest>;
auto ManifestOf(const Descriptor& directory, std::string_view text) -> ErrorOr<Manifest>;

}  // namespace shardc
