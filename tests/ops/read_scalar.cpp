#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(ReadScalar, CopiesTheNumber) {
  KernelFixture fixture;
  const ScalarId loss = fixture.AddScalar(ScalarKind::Metric, 0);
  const ValueId value = fixture.F64({2.125});
  fixture.Run(op::ReadScalar{.value = value, .to = loss});
  EXPECT_EQ(fixture.scalars()[loss], 2.125);
}

}  // namespace shardc
