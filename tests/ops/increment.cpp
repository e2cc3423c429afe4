#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Increment, AddsOneAtEachRun) {
  KernelFixture fixture;
  const ScalarId other = fixture.AddScalar(ScalarKind::State, 7);
  const ScalarId step = fixture.AddScalar(ScalarKind::State, 41);
  const Kernel kernel = fixture.BindWithScratch(op::Increment{.scalar = step});
  EXPECT_EQ(fixture.scalars()[step], 41);
  EXPECT_TRUE(kernel(Moment{}).ok());
  EXPECT_TRUE(kernel(Moment{}).ok());
  EXPECT_EQ(fixture.scalars()[step], 43);
  EXPECT_EQ(fixture.scalars()[other], 7);
}

}  // namespace shardc
