// Seconds since a moment, by the clock that is never set.
#pragma once

#include <chrono>

#include "compiler/base/units.h"

namespace shardc {

class Stopwatch {
 public:
  /// Since this object was made.
  auto Elapsed() const -> Seconds {
    return Seconds{std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count()};
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace shardc
