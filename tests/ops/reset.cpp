#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Reset, SetsOneFlagToZero) {
  KernelFixture fixture;
  const ScalarId other = fixture.AddScalar(ScalarKind::Flag, 7);
  const ScalarId count = fixture.AddScalar(ScalarKind::Flag, 41);
  const Kernel kernel = fixture.BindWithScratch(op::Reset{.scalar = count});
  EXPECT_EQ(fixture.scalars()[count], 41);
  EXPECT_TRUE(kernel(Moment{}).ok());
  EXPECT_EQ(fixture.scalars()[count], 0);
  EXPECT_EQ(fixture.scalars()[other], 7);
}

TEST(Reset, OfAFlagOnly) {
  for (const auto& [kind, sound] : {std::pair{ScalarKind::Flag, true}, std::pair{ScalarKind::State, false},
                                    std::pair{ScalarKind::Schedule, false}, std::pair{ScalarKind::Metric, false}}) {
    KernelFixture fixture;
    const ScalarId scalar = fixture.AddScalar(kind, 0);
    OpCheck check("op");
    Verify(op::Reset{.scalar = scalar}, fixture.plan(), check);
    EXPECT_EQ(check.failures().empty(), sound) << ToText(kind);
    // What counts up is a flag too, or state.
    OpCheck increment("op");
    Verify(op::Increment{.scalar = scalar}, fixture.plan(), increment);
    EXPECT_EQ(increment.failures().empty(), sound || kind == ScalarKind::State) << ToText(kind);
  }
}

}  // namespace shardc
