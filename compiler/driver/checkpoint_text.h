// Writes what `shardc checkpoint` prints, as text and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/checkpoint/compare_checkpoints.h"
#include "compiler/checkpoint/find_checkpoints.h"
#include "compiler/checkpoint/find_damage.h"
#include "compiler/checkpoint/manifest.h"

namespace shardc {

/// Returns the bytes that the base has for a manifest, in the types of the run.
auto BytesInBase(const Manifest& manifest) -> int64_t;
/// Returns the bytes of the files that a manifest has.
auto BytesOfFiles(const Manifest& manifest) -> int64_t;

/// Returns the lines of a list. `now_ns`: nanoseconds since the epoch, for ages.
auto ListAsText(const std::vector<FoundCheckpoint>& found, int64_t now_ns) -> std::string;
auto ListAsJson(const std::vector<FoundCheckpoint>& found, int64_t now_ns) -> std::string;

auto ShowAsText(const std::string& path, const Manifest& manifest) -> std::string;
auto ShowAsJson(const std::string& path, const Manifest& manifest) -> std::string;

auto DamageAsText(const std::string& path, const Manifest& manifest, const std::vector<Damage>& damage) -> std::string;
auto DamageAsJson(const std::string& path, const Manifest& manifest, const std::vector<Damage>& damage) -> std::string;

/// The two checkpoints of a comparison.
struct ComparedCheckpoints {
  struct Named {
    std::string path;
    const Manifest* manifest = nullptr;
  };
  Named a;
  Named b;
};

/// Returns true if no element differs, and both have the same tensors.
auto IsSame(const CheckpointComparison& comparison) -> bool;
auto ComparisonAsText(const ComparedCheckpoints& named, const CheckpointComparison& comparison) -> std::string;
auto ComparisonAsJson(const ComparedCheckpoints& named, const CheckpointComparison& comparison) -> std::string;

}  // namespace shardc
