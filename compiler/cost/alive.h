// What is alive at an op, buffer by buffer, and the key of the recipe that lowers it.
#pragma once

#include <string>
#include <vector>

#include "compiler/cost/memory_walk.h"

namespace shardc {

/// Buffers that are alike: one, or one of each of several blocks.
struct AliveBuffers {
  /// "model.layers.*.mlp.gate_proj": the star stands for the numbers of the blocks.
  std::string name;
  std::vector<int64_t> blocks;
  Category category = Category::Activations;
  int64_t count = 0;
  /// Bytes of all of them.
  Bytes bytes;
  /// A key that makes them smaller, or fewer: "loss.chunks". Empty if there is no such key.
  std::string key;
};

/// Returns the buffers that are alive at the op of this number, the largest first.
auto AliveAt(const Plan& plan, SectionKind section, int64_t op_index) -> std::vector<AliveBuffers>;

}  // namespace shardc
