#include "compiler/checkpoint/widen.h"

#include <cstring>

#include "compiler/base/bfloat16.h"
#include "compiler/base/check.h"
#include "compiler/base/half.h"

namespace shardc {

template <class T>
static auto WidenAs(const std::byte* from, int64_t count, float* out) -> void {
  for (int64_t i = 0; i < count; ++i) {
    T element{};
    std::memcpy(&element, from + i * static_cast<int64_t>(sizeof element), sizeof element);
    out[i] = Load(element);
  }
}

auto Widen(const std::byte* from, DType dtype, int64_t count, float* out) -> void {
  switch (dtype) {
    case DType::F32: std::memcpy(out, from, static_cast<size_t>(count) * sizeof(float)); return;
    case DType::BF16: WidenAs<BFloat16>(from, count, out); return;
    case DType::F16: WidenAs<Half>(from, count, out); return;
    case DType::F64:
    case DType::I32:
    case DType::I64: break;
  }
  CHECK(false, "elements of {} are widened", ToText(dtype));
}

}  // namespace shardc
