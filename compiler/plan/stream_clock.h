// Vector clocks over streams: by stream, the last op, or run of an op, that is known to be over.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "compiler/plan/types.h"

namespace shardc {

using StreamClock = std::array<int64_t, NumStreams>;

/// Lets `clock` follow all that `other` follows.
constexpr auto Join(StreamClock& clock, const StreamClock& other) -> void {
  for (size_t i = 0; i < clock.size(); ++i) {
    clock[i] = std::max(clock[i], other[i]);
  }
}

}  // namespace shardc
