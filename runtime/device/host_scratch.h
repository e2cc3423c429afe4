// Memory of the host that stands in for memory of a device which the host cannot reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "compiler/base/copied_pieces.h"

namespace shardc {

class HostScratch {
 public:
  /// At least `bytes`, aligned for every element type. Valid until the next call, whatever it held before.
  auto Reserve(int64_t bytes) -> std::byte* {
    if (static_cast<int64_t>(bytes_.size()) < bytes) {
      bytes_.resize(static_cast<size_t>(bytes));
    }
    return bytes_.data();
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace shardc
