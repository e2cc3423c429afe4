// Which clients count as silent, by how much the server has received from them.
#include "runtime/net/client_watch.h"

#include <gtest/gtest.h>

namespace shardc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ClientWatchTest : public testing::Test {
 protected:
  /// Looks twice a second, for so long.
  auto Look(const std::map<std::string, uint64_t>& received, seconds time) -> void {
    const auto end = now_ + time;
    for (; now_ < end; now_ += milliseconds(500)) {
      watch_.Look(received, now_);
    }
  }

  ClientWatch watch_;
  ClientWatch::Clock::time_point now_ = ClientWatch::Clock::now();
};

TEST_F(ClientWatchTest, OneThatTalksIsEnough) {
  Look({{"a", 10}, {"b", 10}}, seconds(3));
  EXPECT_TRUE(watch_.HaveSpokenWithin(seconds(3)));
  EXPECT_FALSE(watch_.HaveSpokenWithin(seconds(2)));
  Look({{"a", 10}, {"b", 11}}, seconds(1));
  EXPECT_TRUE(watch_.HaveSpokenWithin(seconds(1)));
  Look({{"a", 10}}, seconds(1));
  EXPECT_FALSE(watch_.HaveSpokenWithin(seconds(4))) << "only the silent one is left";
}

TEST_F(ClientWatchTest, WhoHasGoneDoesNotCount) {
  Look({{"a", 10}}, seconds(1));
  Look({}, seconds(1));
  EXPECT_FALSE(watch_.HaveSpokenWithin(seconds(100)));
}

TEST_F(ClientWatchTest, TheTimeInWhichTheServerWasStoppedDoesNotCount) {
  Look({{"a", 10}}, seconds(1));
  now_ += seconds(3600);
  Look({{"a", 10}}, seconds(1));
  EXPECT_TRUE(watch_.HaveSpokenWithin(seconds(4)));
}

}  // namespace
}  // namespace shardc
