#include "runtime/kernels/host/finite.h"

#include <cmath>

#include "runtime/kernels/machine/device.h"

namespace shardc {

template <class T, class IsBad>
static auto Scan(const T* elements, int64_t count, const IsBad& is_bad) -> std::optional<NonFinite> {
  for (int64_t i = 0; i < count; ++i) {
    double value = 0;
    if constexpr (std::is_same_v<T, double>) {
      value = elements[i];
    } else {
      value = static_cast<double>(Load(elements[i]));
    }
    if (is_bad(value)) {
      return NonFinite{.element = i, .value = value};
    }
  }
  return std::nullopt;
}

template <class IsBad>
static auto ScanAny(DType dtype, const std::byte* data, int64_t count, const IsBad& is_bad)
    -> std::optional<NonFinite> {
  switch (dtype) {
    case DType::F32: return Scan(reinterpret_cast<const float*>(data), count, is_bad);
    case DType::BF16: return Scan(reinterpret_cast<const BFloat16*>(data), count, is_bad);
    case DType::F64: return Scan(reinterpret_cast<const double*>(data), count, is_bad);
    case DType::I32:
    case DType::I64:
    case DType::F16: break;
  }
  return std::nullopt;
}

auto FindNonFinite(const Plan& plan, DType dtype, const std::byte* data, int64_t count) -> std::optional<NonFinite> {
  // Nearly always all are.
  const Loops& loops = LoopsOf(plan);
  if ((dtype == DType::F32 && loops.f32.AllFinite(reinterpret_cast<const float*>(data), count)) ||
      (dtype == DType::BF16 && loops.bf16.AllFinite(reinterpret_cast<const BFloat16*>(data), count))) {
    return std::nullopt;
  }
  return ScanAny(dtype, data, count, [](double value) { return !std::isfinite(value); });
}

auto FindNonFiniteButMinusInfinity(DType dtype, const std::byte* data, int64_t count) -> std::optional<NonFinite> {
  return ScanAny(dtype, data, count,
                 [](double value) { return !std::isfinite(value) && !(std::isinf(value) && value < 0); });
}

}  // namespace shardc
