// When a bound op runs.
#pragma once

#include <cstdint>

namespace shardc {

struct Moment {
  int64_t step = 0;
  /// Index of the innermost repeat.
  int64_t repeat = 0;
};

}  // namespace shardc
