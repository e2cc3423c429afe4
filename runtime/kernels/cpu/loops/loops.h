// The table of inner loops of one device, made from the rows of loops.def.
//
// What is compiled for a processor must not leak into code that others run: a file of this folder includes nothing that
// could emit a function shared between translation units, and keeps its own in namespace SHARDC_LOOPS (avx512 or
// portable). A test looks at the symbols.
#pragma once

#include <cstdint>
#include <type_traits>

#include "runtime/kernels/update_factors.h"

namespace shardc {

/// Which columns of a tile of scores its rows see. Row r: the first `visible` + r, where there are as many, but those
/// before the document of the row.
struct SeenColumns {
  int64_t visible = 0;
  /// Starts of the documents of the rows, a stride apart; null if none of them comes after the first column.
  const int32_t* starts_R = nullptr;
  int64_t starts_stride = 0;
  /// The position of the first column.
  int64_t position = 0;
};

template <class T>
struct ElementLoops {
#define LOOP(Result, name, parameters)
#define ELEMENT_LOOP(Result, name, parameters) auto(*name) parameters->Result = nullptr;
#define RESIDUAL_LOOP(Result, name, parameters)
#include "runtime/kernels/cpu/loops/loops.def"
};

template <class T, class R>
struct ResidualLoops {
#define LOOP(Result, name, parameters)
#define ELEMENT_LOOP(Result, name, parameters)
#define RESIDUAL_LOOP(Result, name, parameters) auto(*name) parameters->Result = nullptr;
#include "runtime/kernels/cpu/loops/loops.def"
};

struct Loops {
#define LOOP(Result, name, parameters) auto(*name) parameters->Result = nullptr;
#define ELEMENT_LOOP(Result, name, parameters)
#define RESIDUAL_LOOP(Result, name, parameters)
#include "runtime/kernels/cpu/loops/loops.def"
  ElementLoops<float> f32;
  ElementLoops<BFloat16> bf16;
  ResidualLoops<float, float> f32_f32;
  ResidualLoops<BFloat16, BFloat16> bf16_bf16;
  ResidualLoops<BFloat16, float> bf16_f32;

  template <class T>
  auto Of() const -> const ElementLoops<T>& {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else {
      return bf16;
    }
  }
  template <class T, class R>
  auto Of() const -> const ResidualLoops<T, R>& {
    if constexpr (std::is_same_v<T, float>) {
      return f32_f32;
    } else if constexpr (std::is_same_v<R, float>) {
      return bf16_f32;
    } else {
      return bf16_bf16;
    }
  }
};

extern const Loops Avx512Loops;
extern const Loops PortableLoops;

#ifdef SHARDC_LOOPS
namespace SHARDC_LOOPS {
#define LOOP(Result, name, parameters) auto name parameters->Result;
#define ELEMENT_LOOP(Result, name, parameters) \
  template <class T>                           \
  auto name parameters->Result;
#define RESIDUAL_LOOP(Result, name, parameters) \
  template <class T, class R>                   \
  auto name parameters->Result;
#include "runtime/kernels/cpu/loops/loops.def"
}  // namespace SHARDC_LOOPS
#endif

}  // namespace shardc
