#include "runtime/net/call_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "compiler/base/waited_time.h"

namespace shardc {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// A process that goes on after a suspension may find that the call ended first.
TEST(CallThread, MovesDeadlinesByASuspensionInWhichTheCallEnds) {
  CallThread thread;
  const auto looks_late = [] {
    std::this_thread::sleep_for(WaitedTime::LongestGap + milliseconds(300));
    return true;
  };
  EXPECT_TRUE(thread.Run([] {}, steady_clock::now() + std::chrono::hours(1), looks_late));
  EXPECT_GE(thread.moved(), milliseconds(300));
}

TEST(CallThread, MovesNoDeadlineWhileTheProcessRuns) {
  CallThread thread;
  EXPECT_FALSE(thread.Run([] { std::this_thread::sleep_for(std::chrono::seconds(2)); },
                          steady_clock::now() + milliseconds(300), [] { return true; }));
  EXPECT_LT(thread.moved(), milliseconds(300)) << "on a busy machine a little may go";
}

}  // namespace
}  // namespace shardc
