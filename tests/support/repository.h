// Files of the repository, by their paths in it.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/temporary_folder.h"

namespace shardc {

/// A checkpoint of a small model; it has only a manifest, because a plan needs nothing else of a seed.
inline constexpr std::string_view SampleSeed = "tests/support/seed/step-00000002";

/// Returns where a file or folder of the repository is on this machine.
inline auto RepositoryPath(std::string_view path) -> std::string {
  return std::string(SHARDC_SOURCE_DIR "/").append(path);
}

/// Reads a file of the repository. Requires: the file is there.
inline auto ReadRepositoryFile(std::string_view path) -> std::string { return ReadText(RepositoryPath(path)); }

}  // namespace shardc
