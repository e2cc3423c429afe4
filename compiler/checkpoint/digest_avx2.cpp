// xxHash compiled for AVX2. Nothing else is included: a weak function compiled here would run on every machine.
#include "compiler/checkpoint/digest_avx2.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace shardc {

auto UpdateByAvx2(void* state, const void* data, size_t bytes) -> void {
  XXH3_128bits_update(static_cast<XXH3_state_t*>(state), data, bytes);
}

auto DigestByAvx2(const void* data, size_t bytes, void* canonical) -> void {
  XXH128_canonicalFromHash(static_cast<XXH128_canonical_t*>(canonical), XXH3_128bits(data, bytes));
}

}  // namespace shardc
