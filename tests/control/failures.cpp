// A rank that dies, ends, fails or does not come: every other returns an error that names it, in time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <mutex>

#include "tests/control/world.h"

namespace shardc {
namespace {

using Clock = std::chrono::steady_clock;
using testing::AllOf;
using testing::HasSubstr;

auto SecondsSince(Clock::time_point begin) -> double {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Barriers until one fails; gives its text.
auto BarrierUntilFailure(const std::shared_ptr<HostMember>& member) -> std::string {
  while (true) {
    if (const Status status = member->Meet(member->GroupOf(AxisSet::All())); !status) {
      EXPECT_EQ(status.error().code, ExitCode::Environment);
      return status.error().message;
    }
  }
}

TEST(Failures, EveryStreamThatIsAtAnOpIsNamed) {
  World world(Mesh{{1, 2, 1}}, Threads);
  ControlBlock& block = world.block();
  EXPECT_EQ(block.WhereIs(1), "not seen at any op yet");
  block.SetPosition(1, Stream::Dp, {12, SectionKind::Step, 400});
  block.SetPosition(1, Stream::Compute, {12, SectionKind::Step, 415});
  EXPECT_EQ(block.WhereIs(1), "last seen at op 415 of step 12, and on stream dp at op 400 of step 12");
  block.LeavePosition(1, Stream::Dp);
  EXPECT_EQ(block.WhereIs(1), "last seen at op 415 of step 12");
  block.LeavePosition(1, Stream::Compute);
  EXPECT_EQ(block.WhereIs(1), "last seen at op 415 of step 12") << "between two ops";
  EXPECT_EQ(block.WhereIs(0), "not seen at any op yet");
}

// The parent waits for rank 0 first here, so rank 1 stays a zombie: the ranks find out by themselves.
TEST(Failures, RankKilledInComputeIsNamed) {
  World world(Mesh{{1, 3, 1}}, Processes);
  const auto begin = Clock::now();
  const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    HostControl(member).SetPosition(Stream::Compute, {12, SectionKind::Step, 415});
    if (const Status status = member->Meet(member->GroupOf(AxisSet::All())); !status) {
      return status.error().message;
    }
    if (member->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(getpid(), SIGKILL);
    }
    return BarrierUntilFailure(member);
  });
  EXPECT_LT(SecondsSince(begin), 2.0);
  EXPECT_THAT(texts[0], AllOf(HasSubstr("rank 1"), HasSubstr("last seen at op 415 of step 12")));
  EXPECT_EQ(texts[1], "signal 9");
  EXPECT_THAT(texts[2], HasSubstr("rank 1"));
}

TEST(Failures, RankKilledInACollectiveIsNamed) {
  World world(Mesh{{1, 3, 1}}, Processes);
  const auto begin = Clock::now();
  // Rank 1 waits in the barrier when it is killed by rank 0, which comes later.
  auto* victim = reinterpret_cast<std::atomic<pid_t>*>(world.buffer(0));
  const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
    if (member->rank() == 1) {
      victim->store(getpid());
    } else if (member->rank() == 0) {
      while (victim->load() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      kill(victim->load(), SIGKILL);
    }
    return BarrierUntilFailure(member);
  });
  EXPECT_LT(SecondsSince(begin), 2.0);
  EXPECT_THAT(texts[0], HasSubstr("rank 1"));
  EXPECT_EQ(texts[1], "signal 9");
  EXPECT_THAT(texts[2], HasSubstr("rank 1"));
}

TEST(Failures, FailureReportedByTheLauncherWakesAllWaits) {
  for (const auto members : {Threads, Processes}) {
    World world(Mesh{{1, 2, 1}}, members);
    const auto begin = Clock::now();
    const auto texts = world.Run({}, [&](const std::shared_ptr<HostMember>& member) -> std::string {
      if (member->rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        world.block().MarkFailed(1, ExitCode::Environment, SIGSEGV);
        return "";
      }
      return BarrierUntilFailure(member);
    });
    EXPECT_LT(SecondsSince(begin), 1.0);
    EXPECT_THAT(texts[0], HasSubstr("rank 1 was killed by signal 11 (SIGSEGV), not seen at any op yet"));
    const auto failure = world.block().FirstFailure();
    ASSERT_TRUE(failure.has_value());
    EXPECT_EQ(failure->rank, 1);
  }
}

TEST(Failures, FirstFailureWins) {
  World world(Mesh{{1, 3, 1}}, Threads);
  world.block().MarkFailed(2, ExitCode::Checkpoint);
  world.block().MarkFailed(0, ExitCode::Environment, SIGKILL);
  const auto failure = world.block().FirstFailure();
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->rank, 2);
  EXPECT_EQ(failure->code, ExitCode::Checkpoint);
  EXPECT_EQ(failure->signal, 0);
}

TEST(Failures, RankListensWithoutPeer) {
  World world(Mesh{{1, 2, 1}}, Threads);
  EXPECT_TRUE(world.block().Listen(0).ok());
  world.block().MarkFailed(1, ExitCode::Environment, SIGKILL);
  EXPECT_FALSE(world.block().HasHeard(0));
  EXPECT_EQ(world.block().Listen(0).error().message, "rank 1 was killed by signal 9 (SIGKILL), not seen at any op yet");
  EXPECT_TRUE(world.block().HasHeard(0)) << "its own error is that of rank 1";
}

TEST(Failures, ReasonReplacesNone) {
  World world(Mesh{{1, 2, 1}}, Threads);
  world.block().MarkFailed(1, ExitCode::Environment, -1);
  world.block().MarkFailed(1, ExitCode::Environment, SIGKILL);
  EXPECT_EQ(world.block().FirstFailure()->signal, SIGKILL);
  world.block().MarkFailed(1, ExitCode::Environment, SIGTERM);
  EXPECT_EQ(world.block().FirstFailure()->signal, SIGKILL);
}

TEST(Failures, RankThatEndedIsNotWaitedFor) {
  for (const auto members : {Threads, Processes}) {
    World world(Mesh{{1, 2, 1}}, members);
    const auto begin = Clock::now();
    const auto texts = world.Run({}, [](const std::shared_ptr<HostMember>& member) {
      return member->rank() == 1 ? std::string() : BarrierUntilFailure(member);
    });
    EXPECT_LT(SecondsSince(begin), 2.0);
    EXPECT_THAT(texts[0], HasSubstr("rank 1 has ended before this op (axis dp)"));
  }
}

TEST(Failures, TimeoutNamesTheAbsentAndWhereTheyAre) {
  for (const auto members : {Threads, Processes}) {
    World world(Mesh{{1, 3, 1}}, members);
    const auto begin = Clock::now();
    const auto texts =
        world.Run({.timeout = Seconds{0.3}}, [](const std::shared_ptr<HostMember>& member) -> std::string {
          HostControl(member).SetPosition(Stream::Compute, {3, SectionKind::Step, 40 + member->rank()});
          if (member->rank() == 1) {
            std::this_thread::sleep_for(std::chrono::milliseconds(900));
            return "";
          }
          return BarrierUntilFailure(member);
        });
    EXPECT_LT(SecondsSince(begin), 2.0);
    for (const size_t rank : {0U, 2U}) {
      EXPECT_THAT(texts[rank],
                  HasSubstr("timed out after 0.3 s (axis dp), waiting for rank 1, last seen at op 41 of step 3"));
    }
  }
}

// Not after the 50 ms at which a sleeper looks around by itself.
TEST(Failures, ArrivalOfTheLastWakesSleepers) {
  World world(Mesh{{1, 2, 1}}, Processes);
  const auto begin = Clock::now();
  const auto texts = world.Run({}, [](const std::shared_ptr<HostMember>& member) -> std::string {
    for (int round = 0; round < 40; ++round) {
      if (member->rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (const Status status = member->Meet(member->GroupOf(AxisSet::All())); !status) {
        return status.error().message;
      }
    }
    return "";
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"", ""}));
  EXPECT_LT(SecondsSince(begin), 1.0);
}

TEST(Failures, SlowRankIsNamedOnceAndWaitedFor) {
  World world(Mesh{{1, 2, 1}}, Threads);
  std::mutex mutex;
  std::vector<std::string> warnings;
  const WaitOptions options{.slow_after = Seconds{0.2}, .warn = [&](const std::string& text) {
                              const std::lock_guard lock(mutex);
                              warnings.push_back(text);
                            }};
  const auto texts = world.Run(options, [](const std::shared_ptr<HostMember>& member) -> std::string {
    if (member->rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
    }
    const Status status = member->Meet(member->GroupOf(AxisSet::All()));
    return status ? "" : status.error().message;
  });
  EXPECT_EQ(texts, (std::vector<std::string>{"", ""}));
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_THAT(warnings[0], HasSubstr("(axis dp) for rank 1, not seen at any op yet"));
}

TEST(Failures, GroupOfOneNoticesTheFailureOfOthers) {
  World world(Mesh{{1, 2, 1}}, Threads);
  world.block().MarkFailed(1, ExitCode::Environment, SIGKILL);
  const auto texts = world.Run({}, [](const std::shared_ptr<HostMember>& member) -> std::string {
    const Status status = member->Meet(member->GroupOf(AxisSet::Of(Axis::Tp)));
    return status ? "" : status.error().message;
  });
  EXPECT_THAT(texts[0], HasSubstr("rank 1 was killed by signal 9 (SIGKILL)"));
}

TEST(Failures, RanksOfAllHostsMayBeMoreThanOneHostRuns) {
  Mesh mesh{{1, 2048, 1}};
  mesh.hosts = 4;
  EXPECT_TRUE(ControlBlock::Create({.mesh = mesh, .host = 3}).ok());
}

TEST(Failures, TooManyRanksForOneHost) {
  const auto block = ControlBlock::Create({.mesh = Mesh{{1, 16384, 1}}});
  ASSERT_FALSE(block.ok());
  EXPECT_EQ(block.error().code, ExitCode::Environment);
  EXPECT_EQ(block.error().message, "the plan's mesh has 16384 ranks on each of its hosts; one host runs at most 1024");
}

}  // namespace
}  // namespace shardc
