// Process 0 waits for the lease that the last launch has left in the run directory, while the others wait for process
// 0: longer than `--timeout`, and only as long as all of them go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/hosts/meeting_job.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Two processes, of which the first waits for a lease that is not known to be stale for 30 s.
class WaitingJob {
 public:
  explicit WaitingJob(const std::string& timeout) : job_(2, 1) {
    // Of an owner that nobody knows.
    std::filesystem::create_directory(training_ / "run");
    WriteText(training_ / "run/launch.json", "no lease");
    std::vector<std::string> command = training_.RunCommand();
    command.insert(command.end(), {"--timeout", timeout});
    for (const int64_t rank : {0, 1}) {
      job_.Start(command, rank);
    }
  }
  auto AwaitWait() -> void {
    ASSERT_TRUE(job_.at(0).Await([&] { return job_.at(0).err().find("may be in use by") != std::string::npos; }))
        << job_.at(0).err();
  }
  auto job() -> MeetingJob& { return job_; }
  auto training() const -> const Training& { return training_; }

 private:
  Training training_{{"mesh.dp=2", "train.steps=3"}};
  MeetingJob job_;
};

TEST(LeaseWait, IsWaitedForByTheOthersAndEndsWithThem) {
  // All at once, as the first takes half a minute.
  WaitingJob goes_on("4");
  WaitingJob loses_one("600");
  WaitingJob is_told("600");
  for (WaitingJob* each : {&goes_on, &loses_one, &is_told}) {
    each->AwaitWait();
  }
  loses_one.job().at(1).Kill(SIGKILL);
  // Process 0 does not wait for the one that is gone to leave, which would take ten seconds more (Meeting::Leave).
  const Outcome alone = loses_one.job().at(0).Wait({5 + LoadAllowance});
  EXPECT_EQ(alone.status, 6) << alone.err;
  EXPECT_THAT(OnlyErrorIn(alone.err), testing::ContainsRegex("process 1 \\([^)]+\\) is gone"));
  is_told.job().at(1).Kill(SIGTERM);
  for (const size_t i : {1U, 0U}) {
    const Outcome stopped = is_told.job().at(i).Wait({2 + LoadAllowance});
    EXPECT_EQ(stopped.status, 75) << i << ": " << stopped.err;
  }
  goes_on.job().ExpectAllEnd(0, "");
  EXPECT_EQ(ReadMetrics(goes_on.training() / "run").last_step(), 3);
}

TEST(LeaseWait, EndsSoonAfterAProcess0ThatIsStoppedInIt) {
  WaitingJob job("4");
  job.AwaitWait();
  job.job().at(0).Kill(SIGSTOP);
  const Outcome other = job.job().at(1).Wait({4 + 5 + 10});
  EXPECT_EQ(other.status, 6) << other.err;
  EXPECT_THAT(other.err, HasSubstr("process 0 of 2 ("));
  // Nobody started it but this test, which ends it.
  job.job().at(0).Kill(SIGKILL);
  EXPECT_EQ(job.job().at(0).Wait({15}).status, 128 + SIGKILL);
}

}  // namespace
}  // namespace shardc
