// In which order the emulated device runs the warps of a block. A kernel that needs a barrier between two of them, and
// has none, computes other bits in one of the orders.
#pragma once

#include <atomic>

namespace shardc::emulated {

enum class WarpOrder { Ascending, Descending };

inline std::atomic<WarpOrder> warp_order = WarpOrder::Ascending;

}  // namespace shardc::emulated
