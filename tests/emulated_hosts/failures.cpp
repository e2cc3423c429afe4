// Hosts of GPUs of which a rank fails, dies or stands still: all processes end in time, and name the rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "tests/emulated_hosts/hosts.h"

namespace shardc {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t NumRanks = 4;
constexpr Seconds Longest{15};
constexpr const char* AnyCall = "NCCL: (all_gather|send|receive|begin_group|end_group) broke";

class EmulatedHostFailure : public testing::Test {
 protected:
  auto Train(const std::string& run, PrepareRank prepare, Seconds timeout = Seconds{20}) -> HostsRun {
    const Sets endless{"mesh.hosts=2", "mesh.dp=4", "train.steps=1000000", "train.eval_every=0"};
    HostsRun ended = TrainOnHosts(training_.CompileFor(endless, "nccl"), training_ / run, prepare, timeout);
    EXPECT_EQ(ended.status, static_cast<int>(ExitCode::Environment)) << ended.text;
    return ended;
  }
  /// Expects that all processes end in time, with errors that name this rank and no other, and say `what`.
  auto ExpectEndOf(int64_t rank, const std::string& what, PrepareRank prepare) -> void {
    const HostsRun run = Train(what, prepare);
    EXPECT_LT(run.waited, Longest);
    EXPECT_THAT(run.text, ContainsRegex(fmt::format("error: rank {} \\([^)]+\\)[^\n]*{}", rank, what)));
    for (int64_t other = 0; other < NumRanks; ++other) {
      if (other != rank) {
        EXPECT_THAT(run.text, Not(HasSubstr(fmt::format("error: rank {} (", other))));
      }
    }
  }

  HostsTraining training_;
};

/// Sends the calling process a signal in the middle of its steps.
auto SignalSoon(int signal) -> void {
  std::thread([signal] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    kill(getpid(), signal);
  }).detach();
}

TEST_F(EmulatedHostFailure, NamesRankWhoseCallFails) {
  ExpectEndOf(3, "NCCL: version broke",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 3 ? 0 : -1; });
  ExpectEndOf(1, "NCCL: init broke",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 1 ? 2 : -1; });
  ExpectEndOf(2, AnyCall, [](NcclDouble& nccl, int64_t rank) { nccl.switches.fails_at = rank == 2 ? 40 : -1; });
}

TEST_F(EmulatedHostFailure, NamesRankWhoseNetworkFails) {
  ExpectEndOf(1, "unhandled system error",
              [](NcclDouble& nccl, int64_t rank) { nccl.switches.breaks_at = rank == 1 ? 20 : -1; });
}

TEST_F(EmulatedHostFailure, EndsWhateverHangs) {
  ExpectEndOf(0, AnyCall, [](NcclDouble& nccl, int64_t rank) {
    nccl.switches.fails_at = rank == 0 ? 40 : -1;
    nccl.switches.abort_hangs = true;
  });
}

TEST_F(EmulatedHostFailure, NamesRankThatIsKilled) {
  ExpectEndOf(3, "was killed by signal 9 \\(SIGKILL\\)", [](NcclDouble&, int64_t rank) {
    if (rank == 3) {
      SignalSoon(SIGKILL);
    }
  });
}

TEST_F(EmulatedHostFailure, NamesRankThatIsStopped) {
  constexpr Seconds Timeout{3};
  const HostsRun run = Train(
      "stopped",
      [](NcclDouble&, int64_t rank) {
        if (rank == 3) {
          SignalSoon(SIGSTOP);
        }
      },
      Timeout);
  EXPECT_LT(run.waited, Timeout + Longest);
  // Its own host waits for it at a meeting, and the other one at an exchange.
  EXPECT_THAT(run.text, ContainsRegex("error: rank [^\n]*(waiting for rank 3[ ,]|the last exchange was with rank 3 )"));
  EXPECT_THAT(run.text, Not(ContainsRegex("the GPU got no further within [^;]*; from")));
  EXPECT_THAT(run.text, HasSubstr("warning: rank 3 "));
}

}  // namespace
}  // namespace shardc
