#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Add, AddsOverTheSecond) {
  for (const int64_t size : {1, 17, 100003}) {
    KernelFixture fixture;
    const auto a = RandomNumbers(size, 1);
    const auto b = RandomNumbers(size, 2);
    std::vector<double> expected(a.size());
    for (size_t i = 0; i < a.size(); ++i) {
      expected[i] = a[i] + b[i];
    }
    const ValueId left = fixture.F32({size}, a);
    const ValueId right = fixture.F32({size}, b);
    const ValueId y = fixture.Over(right);
    fixture.Run(op::Add{.a = left, .b = right, .y = y});
    ExpectClose(OpKind::Add, "y", fixture.At<float>(y), expected);
    ExpectClose(OpKind::Add, "a is left alone", fixture.At<float>(left), a);
  }
}

}  // namespace shardc
