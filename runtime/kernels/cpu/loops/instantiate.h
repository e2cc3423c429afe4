// INSTANTIATE_*: what a file of this folder ends with, inside namespace SHARDC_LOOPS: the element types of its
// templates.
#pragma once

#include "compiler/base/bfloat16.h"

#define INSTANTIATE_ELEMENT_LOOP(name)        \
  template decltype(name<float>) name<float>; \
  template decltype(name<BFloat16>) name<BFloat16>;
#define INSTANTIATE_RESIDUAL_LOOP(name)                                 \
  template decltype(name<float, float>) name<float, float>;             \
  template decltype(name<BFloat16, BFloat16>) name<BFloat16, BFloat16>; \
  template decltype(name<BFloat16, float>) name<BFloat16, float>;
