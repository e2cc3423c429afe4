// Guard mode (`[run] guard`): bytes on each side of a buffer that belong to nobody. `allocate` leaves them, the runtime
// paints and checks them.
#pragma once

#include <cstdint>

namespace shardc {

/// On each side of every buffer. A multiple of the alignment of buffers, so that offsets stay aligned; the zone behind
/// a buffer goes on to the next multiple.
constexpr int64_t RedZoneBytes = 256;

}  // namespace shardc
