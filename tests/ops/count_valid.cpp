#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(CountValid, CountsWhatIsNotNegative) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId targets = fixture.I32({3, 2}, {0, -1, 5, -1, -100, 256});
    const ValueId count = fixture.Add(DType::F64, {1});
    fixture.Run(op::CountValid{.targets = targets, .count = count, .count_onto = {}});
    EXPECT_EQ(fixture.At<double>(count)[0], 3);
    const ValueId sum = fixture.Over(count);
    fixture.Run(op::CountValid{.targets = targets, .count = sum, .count_onto = count});
    EXPECT_EQ(fixture.At<double>(sum)[0], 6);
  });
}

TEST(CountValid, AllMaskedIsZero) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const ValueId targets = fixture.I32({1, 2}, {-1, -1});
    const ValueId count = fixture.Add(DType::F64, {1});
    fixture.Run(op::CountValid{.targets = targets, .count = count, .count_onto = {}});
    EXPECT_EQ(fixture.At<double>(count)[0], 0);
  });
}

}  // namespace shardc
