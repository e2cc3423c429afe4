// The table of this path. SHARDC_LOOPS_TABLE is Avx512Loops or PortableLoops.
#include "runtime/kernels/cpu/loops/loops.h"

namespace shardc {

namespace SHARDC_LOOPS {

template <class T>
static constexpr auto LoopsOf() -> ElementLoops<T> {
  return {
#define LOOP(Result, name, parameters)
#define ELEMENT_LOOP(Result, name, parameters) .name = &name<T>,
#define RESIDUAL_LOOP(Result, name, parameters)
#include "runtime/kernels/cpu/loops/loops.def"
  };
}

template <class T, class R>
static constexpr auto LoopsOf() -> ResidualLoops<T, R> {
  return {
#define LOOP(Result, name, parameters)
#define ELEMENT_LOOP(Result, name, parameters)
#define RESIDUAL_LOOP(Result, name, parameters) .name = &name<T, R>,
#include "runtime/kernels/cpu/loops/loops.def"
  };
}

}  // namespace SHARDC_LOOPS

const Loops SHARDC_LOOPS_TABLE{
#define LOOP(Result, name, parameters) .name = &SHARDC_LOOPS::name,
#define ELEMENT_LOOP(Result, name, parameters)
#define RESIDUAL_LOOP(Result, name, parameters)
#include "runtime/kernels/cpu/loops/loops.def"
    .f32 = SHARDC_LOOPS::LoopsOf<float>(),
    .bf16 = SHARDC_LOOPS::LoopsOf<BFloat16>(),
    .f32_f32 = SHARDC_LOOPS::LoopsOf<float, float>(),
    .bf16_bf16 = SHARDC_LOOPS::LoopsOf<BFloat16, BFloat16>(),
    .bf16_f32 = SHARDC_LOOPS::LoopsOf<BFloat16, float>(),
};

}  // namespace shardc
