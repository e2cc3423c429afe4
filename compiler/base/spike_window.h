// How many losses a window of train.spike_window holds before it judges one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardc {

/// Half a window, and at least two, because a standard deviation needs two losses.
constexpr auto LeastLossesToJudge(int64_t window) -> int64_t { return std::max<int64_t>(2, (window + 1) / 2); }

}  // namespace shardc
