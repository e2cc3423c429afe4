// The targets that a sample lacks because its documents end.
#pragma once

#include <cstdint>

namespace shardc {

/// Writes -1 to the targets of the places whose next token is of another document, or of the next sample. Both have a
/// number for each of seq places, at [0], [stride], ...; `starts` says where the document of a place begins.
inline auto TakeTargetsAtEnds(const int32_t* starts, int64_t seq, int64_t stride, int32_t* targets) -> void {
  for (int64_t s = 0; s < seq; ++s) {
    const bool ends = s + 1 == seq || starts[(s + 1) * stride] == s + 1;
    targets[s * stride] = ends ? -1 : targets[s * stride];
  }
}

}  // namespace shardc
