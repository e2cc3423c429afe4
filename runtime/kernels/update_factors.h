// What updates of all families take: the numbers of one step and one group, and the type of the copy.
#pragma once

#include <type_traits>

#include "compiler/base/bfloat16.h"

namespace shardc {

/// The numbers of one step and one group.
struct AdamwFactors {
  float gradient = 1;
  float decay = 1;
  float take1 = 0;
  float keep2 = 0;
  float take2 = 0;
  float step_size = 0;
  float bias2_root = 1;
  float eps = 0;
};

struct SgdFactors {
  float gradient = 1;
  float decay = 0;
  float momentum = 0;
  float lr = 0;
};

/// The other of the two element types.
template <class T>
using OtherElement = std::conditional_t<std::is_same_v<T, float>, BFloat16, float>;

}  // namespace shardc
