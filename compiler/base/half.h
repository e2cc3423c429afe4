// The element type f16 of IEEE 754: read from files, and never computed with.
#pragma once

#include <bit>
#include <cstdint>

namespace shardc {

struct Half {
  uint16_t bits;
};

/// Returns the number as f32, which is exact; a NaN stays one.
inline auto Load(Half element) -> float {
  constexpr uint32_t ExponentBits = 0x7C00;
  constexpr uint32_t FractionBits = 0x03FF;
  const uint32_t sign = (element.bits & 0x8000U) << 16U;
  const uint32_t exponent = element.bits & ExponentBits;
  const uint32_t fraction = element.bits & FractionBits;
  if (exponent == 0) {
    // Zero, or a subnormal: whole multiples of 2^-24. As no arithmetic meets a subnormal f32, flushing changes nothing.
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  // The bias of the exponent is 15 there and 127 here.
  const uint32_t widened = exponent == ExponentBits ? 0x7F800000U : (exponent << 13U) + (112U << 23U);
  return std::bit_cast<float>(sign | widened | fraction << 13U);
}

}  // namespace shardc
