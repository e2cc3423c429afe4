#include "compiler/base/waited_time.h"

#include <gtest/gtest.h>

namespace shardc {
namespace {

using std::chrono::milliseconds;

TEST(WaitedTime, CountsALongGapAsASecond) {
  auto now = WaitedTime::Clock::now();
  WaitedTime waited(now);
  EXPECT_EQ(waited.Look(now += milliseconds(400)), milliseconds(400));
  EXPECT_EQ(waited.Look(now += milliseconds(5000)), milliseconds(1400));
  EXPECT_EQ(waited.Look(now += milliseconds(400)), milliseconds(1800));
  waited.Restart();
  EXPECT_EQ(waited.Look(now += milliseconds(300)), milliseconds(300));
}

}  // namespace
}  // namespace shardc
