// What initialize ops draw of a parameter on one rank, counted and summed as it is drawn.
#pragma once

#include <cstdint>

namespace shardc {

struct Drawn {
  /// Elements; an element that is drawn twice counts twice.
  int64_t count = 0;
  /// Of x - m, where m is the mean by analysis of the parameter's rule (MomentsOf), and of its square.
  double sum = 0;
  double squares = 0;
};

}  // namespace shardc
