#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Copy, KeepsEveryBitOfEveryType) {
  ForBackends([](const Backend& backend) {
    for (const int64_t size : {1, 7, 1000, 100003}) {
      for (const DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I32, DType::I64}) {
        KernelFixture fixture(backend);
        const ValueId x = fixture.Add(dtype, {size});
        const ValueId y = fixture.Add(dtype, {size});
        // Bytes that are no numbers of some types: NaN with a payload, subnormals.
        const auto bytes_of = [&](ValueId value) {
          return std::span(fixture.At<uint8_t>(value).data(), static_cast<size_t>(size * SizeOf(dtype)));
        };
        const std::span<uint8_t> bytes = bytes_of(x);
        for (size_t i = 0; i < bytes.size(); ++i) {
          bytes[i] = static_cast<uint8_t>(i * 37 + i / 256);
        }
        fixture.Run(op::Copy{.x = x, .y = y});
        EXPECT_TRUE(std::ranges::equal(bytes_of(y), bytes)) << ToText(dtype) << ", " << size;
      }
    }
  });
}

}  // namespace shardc
