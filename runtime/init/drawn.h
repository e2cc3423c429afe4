// What initialize ops draw of a parameter on one rank, counted and summed as it is drawn.
#pragma once

#include <cstdint>

#include "compiler/base/units.h"

namespace shardc {

struct Drawn {
  /// Elements; an element that is drawn twice counts twice.
  int64_t count = 0;
  /// Of x - m, where m is the mean by analysis of the parameter's rule (MomentsOf), and of its square.
  double sum = 0;
  double squares = 0;
  /// Time that it took to load the device's kernel for its rule; 0 if the kernel was there, or the host draws.
  Seconds load_time{};
};

}  // namespace shardc
