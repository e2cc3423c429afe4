// Elements that are not finite, looked for where they are by devices that can.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "compiler/base/bfloat16.h"
#include "runtime/device/family.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {
namespace {

/// Writes an element of a value of the device's.
auto WriteElement(KernelFixture& fixture, ValueId value, int64_t at, uint32_t bits_of_f32) -> void {
  const View view = fixture.ViewOf(value);
  const int64_t size = SizeOf(view.dtype);
  // A bf16 is the upper half of an f32.
  const uint32_t bits = view.dtype == DType::BF16 ? bits_of_f32 >> 16U : bits_of_f32;
  HostScratch scratch;
  Queue& queue = fixture.device().queue(Stream::Compute);
  std::memcpy(queue.BeginWrite(view.base + at * size, size, scratch), &bits, static_cast<size_t>(size));
  ASSERT_TRUE(queue.EndWrite(view.base + at * size, size, scratch).ok());
}

TEST(AreFinite, FindsOneElementOfMany) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    const auto find = PartsOf(FactsOf(backend.device).family).are_finite;
    if (find == nullptr) {
      return;
    }
    for (const int64_t count : {1, 7, 8, 640, 4099, 1 << 17}) {
      KernelFixture fixture(backend);
      const ValueId value = fixture.Add(dtype, {count});
      const View view = fixture.ViewOf(value);
      HostScratch scratch;
      Queue& queue = fixture.device().queue(Stream::Compute);
      const int64_t bytes = count * SizeOf(dtype);
      std::fill_n(queue.BeginWrite(view.base, bytes, scratch), bytes, std::byte{0x12});
      ASSERT_TRUE(queue.EndWrite(view.base, bytes, scratch).ok());
      for (const int64_t at : {int64_t{0}, count / 2, count - 1}) {
        // Infinity, a NaN, the greatest number of both types, and a small one.
        for (const uint32_t bits : {0x7F800000U, 0xFFC00001U, 0x7F7F0000U, 0x00010000U}) {
          WriteElement(fixture, value, at, bits);
          const auto are_finite = find(value, fixture);
          ASSERT_TRUE(are_finite.ok());
          EXPECT_EQ(*are_finite, bits < 0x7F800000U) << count << " elements, " << bits << " at " << at;
        }
      }
    }
  });
}

}  // namespace
}  // namespace shardc
