// How many threads can work on one op that needs scratch: each on a slot of its own.
#pragma once

#include <algorithm>
#include <cstdint>

namespace shardc {

/// Slots where the plan leaves the number of compute threads open. How many there will be is known only when it runs;
/// more slots than threads are memory that no one touches, fewer leave threads idle in these ops.
constexpr int64_t OpenSlots = 4;

/// Returns how many threads get scratch. `threads` as in plan.run: 0 is open. `tasks`: parts that the work can be cut
/// in.
constexpr auto ScratchSlots(int64_t threads, int64_t tasks) -> int64_t {
  return std::min(threads > 0 ? threads : OpenSlots, tasks);
}

}  // namespace shardc
