// Stands in for Gloo's header, of which c10d's headers use this constant. See docs/decisions/0007.
#pragma once

#include <chrono>

namespace gloo {

constexpr std::chrono::milliseconds kNoTimeout{0};

}  // namespace gloo
