// When a member of a job counts as gone: by what it said of its connections, and those that the server has.
#include "runtime/net/member_watch.h"

#include <gtest/gtest.h>

#include "tests/net/members.h"

namespace shardc {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class MemberWatchTest : public NetTest {
 protected:
  auto Say(int64_t index, std::string_view how, std::string_view name = "") -> void {
    lines_ += MemberLine(index, how, name);
  }
  /// What is told at once, or after the time of those who saw more.
  auto Told(const std::set<std::string>& connected, Clock::duration after = {}) -> std::string {
    now_ += after;
    if (const auto told = watch_.Look(lines_, connected, now_)) {
      return *told;
    }
    now_ += MemberWatch::FirstWord + milliseconds(1);
    return watch_.Look(lines_, connected, now_).value_or("");
  }

  MemberWatch watch_;
  std::string lines_;
  Clock::time_point now_ = Clock::now();
};

TEST_F(MemberWatchTest, AConnectionThatEndedIsOfOneThatIsGone) {
  Say(0, "10.0.0.1:1", "process 0 (node0)");
  Say(1, "10.0.0.2:1", "process 1 (node1)");
  EXPECT_EQ(Told({"10.0.0.1:1", "10.0.0.2:1"}), "");
  EXPECT_EQ(Told({"10.0.0.1:1"}), "process 1 (node1) is gone");
  EXPECT_EQ(Told({}), "") << "told once";
}

TEST_F(MemberWatchTest, OthersMaySayItFirst) {
  Say(1, "10.0.0.2:1", "process 1 (node1)");
  EXPECT_EQ(Told({"10.0.0.2:1"}), "");
  EXPECT_FALSE(watch_.Look(lines_, {}, now_));
  EXPECT_FALSE(watch_.Look(lines_, {}, now_ + MemberWatch::FirstWord - milliseconds(1)));
  EXPECT_TRUE(watch_.Look(lines_, {}, now_ + MemberWatch::FirstWord));
}

TEST_F(MemberWatchTest, WhoLeavesIsNotMissed) {
  Say(0, "10.0.0.1:1", "process 0 (node0)");
  EXPECT_EQ(Told({"10.0.0.1:1"}), "");
  Say(0, MemberLeft);
  EXPECT_EQ(Told({}), "");
  EXPECT_EQ(Told({}, seconds(60)), "");
}

TEST_F(MemberWatchTest, WhoMovesHasAWhile) {
  Say(0, "10.0.0.1:1", "process 0 (node0)");
  EXPECT_EQ(Told({"10.0.0.1:1"}), "");
  Say(0, MemberMoves);
  EXPECT_EQ(Told({}), "");
  Say(0, "10.0.0.1:2", "process 0 (node0)");
  EXPECT_EQ(Told({"10.0.0.1:2"}), "");
  Say(0, MemberMoves);
  EXPECT_EQ(Told({}), "");
  EXPECT_EQ(Told({}, MemberWatch::MovesTime), "process 0 (node0) is gone");
}

TEST_F(MemberWatchTest, WhoWasNeverSeenIsGoneUnlessAddressesAreTranslated) {
  Say(0, "10.0.0.1:1", "process 0 (node0)");
  Say(1, "192.168.0.1:1", "process 1 (node1)");
  EXPECT_EQ(Told({"10.0.0.1:1", "10.0.0.9:7"}), "") << "10.0.0.9:7 may be that of process 1";
  EXPECT_EQ(Told({"10.0.0.1:1"}), "process 1 (node1) is gone");
}

TEST_F(MemberWatchTest, ManyAreCounted) {
  for (int64_t i = 0; i < 6; ++i) {
    Say(i, "10.0.0.1:" + std::to_string(i), "process " + std::to_string(i));
  }
  EXPECT_EQ(Told({}), "process 0, process 1, process 2, process 3 and 2 more are gone");
}

TEST_F(MemberWatchTest, TextsThatNoMemberWroteAreNoMembers) {
  lines_ = "x\n\n 1\n3\n3 a\nhalf a line";
  EXPECT_EQ(Told({}), "");
}

TEST_F(MemberWatchTest, AServerTellsThoseWhoWaitOfAMemberThatIsKilled) {
  const auto server = StoreServer::Start({"127.0.0.1", 0}, {.linger = {1}, .prefix = "job"});
  ASSERT_TRUE(server.ok()) << server.error().message;
  const Members members(2, [&](int64_t i) -> std::string {
    const auto store = ConnectTo(*server);
    EXPECT_TRUE(store->Join(i, fmt::format("process {}", i)).ok());
    const auto value = store->Get("never", {60});
    return fmt::format("{}{}", store->was_abandoned() ? "told: " : "", value ? "no error" : value.error().message);
  });
  Sleep(500);
  const auto begin = Clock::now();
  members.Kill(1, SIGKILL);
  EXPECT_EQ(members.Text(0), "told: process 1 is gone");
  EXPECT_LT(SecondsSince(begin), 5 + Slack);
}

TEST_F(MemberWatchTest, AMemberIsItsOwnConnectionBesideOthersOfItsProcess) {
  const auto server = StoreServer::Start({"127.0.0.1", 0}, {.linger = {1}, .prefix = "job"});
  ASSERT_TRUE(server.ok()) << server.error().message;
  const Members members(1, [&](int64_t) -> std::string {
    auto other = ConnectTo(*server);
    const auto store = ConnectTo(*server);
    EXPECT_TRUE(store->Join(0, "process 0").ok());
    Sleep(500);
    other.reset();
    const auto value = store->Get("never", {4});
    return store->was_abandoned() ? "told: " + value.error().message : "waited";
  });
  EXPECT_EQ(members.Text(0), "waited");
}

TEST_F(MemberWatchTest, AnInterruptEndsAWait) {
  const StoreServer server = StartServer();
  const auto begin = Clock::now();
  const auto store = JobStore::Connect({"127.0.0.1", server.port()}, "job", {30},
                                       {.interrupt = [&]() -> Status {
                                          return SecondsSince(begin) < 1 ? Status(Success{})
                                                                         : Status(Fail(ExitCode::Preempted, "stopped"));
                                        },
                                        .tell = {}});
  ASSERT_TRUE(store.ok()) << store.error().message;
  const auto value = (*store)->Get("never", {30});
  ASSERT_FALSE(value.ok());
  EXPECT_EQ(value.error().code, ExitCode::Preempted);
  EXPECT_LT(SecondsSince(begin), 1.5 + Slack);
  EXPECT_TRUE((*store)->is_broken());
  EXPECT_EQ((*store)->Set("key", "").error().message, "stopped");
}

}  // namespace
}  // namespace shardc
