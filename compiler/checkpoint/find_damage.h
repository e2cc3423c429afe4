// Finds the bytes of a checkpoint that are not those that were saved: each is read and compared with the manifest's
// digests.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/base/fs.h"
#include "compiler/checkpoint/manifest.h"
#include "compiler/mesh/mesh.h"

namespace shardc {

/// Bytes of a file that differ: whole blocks, neighbours as one range, and before version 3 of the format the whole
/// file.
struct Damage {
  std::string file;
  Interval bytes;
  /// The tensors, with their roles, that have bytes in it.
  std::vector<std::string> tensors;
  std::string why;
};

/// Returns the damage of all files of a manifest, in their order. Some threads read, a part of a
/// file each at a time, and add what they have read to `bytes_read`. Requires: the manifest was read.
auto FindDamage(const Descriptor& directory, const Manifest& manifest, int num_threads,
                std::atomic<int64_t>& bytes_read) -> std::vector<Damage>;

/// Returns, without bytes, the tensors that the base has for a manifest and that cannot be read, or have other numbers
/// than those that the run began from. Empty without a base. Requires: the manifest was read.
auto FindDamageOfBase(const Descriptor& directory, const Manifest& manifest, std::atomic<int64_t>& bytes_read)
    -> std::vector<Damage>;

}  // namespace shardc
