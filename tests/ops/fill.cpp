#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

template <class T>
static auto ExpectFilled(DType dtype, int64_t size, double value) -> void {
  KernelFixture fixture;
  const ValueId out = fixture.Add(dtype, {size});
  fixture.Run(op::Fill{.out = out, .value = value});
  for (const T element : fixture.At<T>(out)) {
    ASSERT_EQ(element, static_cast<T>(value));
  }
}

TEST(Fill, SetsEveryElement) {
  for (const int64_t size : {1, 7, 1000, 100000}) {
    ExpectFilled<float>(DType::F32, size, -1.5);
    ExpectFilled<double>(DType::F64, size, 0);
    ExpectFilled<int32_t>(DType::I32, size, -1);
    ExpectFilled<int64_t>(DType::I64, size, 12);
  }
}

}  // namespace shardc
