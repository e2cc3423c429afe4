// What the checkpoints of a run leave to its base.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "compiler/checkpoint/manifest.h"

namespace shardc {

struct LeftToBase {
  /// Nothing if the checkpoints hold all that the run has.
  std::optional<ManifestBase> base;
  /// By parameters.
  std::map<std::string, TensorInBase, std::less<>> tensors;
};

}  // namespace shardc
