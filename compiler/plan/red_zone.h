// Guard mode (`[run] guard`): bytes on each side of a buffer that belong to nobody. `allocate` leaves them, the runtime
// paints and checks them.
#pragma once

#include <cstdint>

#include "compiler/plan/plan.h"

namespace shardc {

/// On each side of every buffer. A multiple of the alignment of buffers, so that offsets stay aligned; the zone after
/// a buffer reaches to the next multiple.
constexpr int64_t RedZoneBytes = 256;

/// Returns the bytes of a red zone on each side of a buffer of this plan.
inline auto RedZoneOf(const Plan& plan) -> int64_t { return plan.run.guard ? RedZoneBytes : 0; }
/// Returns the bytes between buffers that are alive together: each has a zone of its own.
inline auto BytesBetweenBuffers(const Plan& plan) -> int64_t { return 2 * RedZoneOf(plan); }

}  // namespace shardc
