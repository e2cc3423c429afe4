// The contents of a seed, whoever wrote it: names, shapes, types and the files of its tensors, as a manifest. A
// checkpoint of a run has one; that of a model of Hugging Face is made of its headers. Where the bytes of a piece lie
// in a file says the file's header in both cases.
#pragma once

#include <optional>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

struct SeedContents {
  Manifest manifest;
  /// The manifest as a run puts it on record.
  std::string text;
  /// The digest by which a plan knows the seed.
  std::string digest;
};

/// Returns true for a directory that holds a seed, or half of one.
auto HoldsSeed(const Descriptor& directory) -> bool;

/// Reads the seed in a directory. Errors: ExitCode::Checkpoint, with file or tensor and remedy.
auto ReadSeedContents(const Descriptor& directory) -> ErrorOr<SeedContents>;

/// Returns the run directory that a checkpoint lies in, if that has a record of its seed; else an empty text.
auto RunDirOfCheckpoint(const std::string& checkpoint) -> std::string;

/// Returns what the run of a checkpoint has on record of its seed; nothing without a record that reads.
auto SeedOfCheckpoint(const std::string& checkpoint) -> std::optional<Manifest>;

/// Reads what a run put on record. Errors: as ManifestFromText.
auto SeedContentsFromRecord(std::string text) -> ErrorOr<SeedContents>;

}  // namespace shardc
