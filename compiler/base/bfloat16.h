// The element type bf16 (the upper half of an f32), and how loops read and write elements of any type.
#pragma once

#include <bit>
#include <cstdint>

namespace shardc {

struct BFloat16 {
  uint16_t bits;
};

// Always inlined, so that no copy compiled for one processor is run on another.

[[gnu::always_inline]] inline auto Load(float element) -> float { return element; }
/// Exact.
[[gnu::always_inline]] inline auto Load(BFloat16 element) -> float {
  return std::bit_cast<float>(static_cast<uint32_t>(element.bits) << 16U);
}

[[gnu::always_inline]] inline auto Store(float& element, float value) -> void { element = value; }
/// Rounds to nearest, ties to even; a NaN stays one. In integers, and by member, so that loops vectorise.
[[gnu::always_inline]] inline auto Store(BFloat16& element, float value) -> void {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = word + 0x7FFFU + ((word >> 16U) & 1U);
  const uint32_t quiet = word | 0x400000U;
  element.bits = static_cast<uint16_t>(((word & 0x7FFFFFFFU) > 0x7F800000U ? quiet : rounded) >> 16U);
}

}  // namespace shardc
