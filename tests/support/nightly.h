// `tools/dev test` makes a fixed part of the repetitions of tests that have many, `tools/dev test --nightly` all of
// them.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace shardc {

/// Returns true in `tools/dev test --nightly`.
inline auto IsNightly() -> bool { return std::getenv("SHARDC_NIGHTLY") != nullptr; }

/// Returns how far apart the repetitions are that are made: one of `n`, and nightly each.
inline auto Stride(int64_t n) -> int64_t { return IsNightly() ? 1 : n; }

}  // namespace shardc
