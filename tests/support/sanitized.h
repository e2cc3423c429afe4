// Is this a build of tools/dev test --sanitize? Programs that the sanitizers watch reserve terabytes of addresses, and
// take several times as long.
#pragma once

namespace shardc {

#ifdef __SANITIZE_ADDRESS__
constexpr bool IsSanitized = true;
#else
constexpr bool IsSanitized = false;
#endif

}  // namespace shardc
