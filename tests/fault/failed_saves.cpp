// Saves that find no room: what is saved already stays as it is, the disk space is given back, and the run ends or goes
// on as the recipe says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Bytes that a file may have: between a plan and a rank's file.
constexpr rlim_t Limit = 150'000;

/// A run of 20 steps, checkpoints at 10 and 20, and its goings-on.
class FailedSaves : public testing::Test {
 protected:
  FailedSaves() : training_({"train.steps=20", "train.eval_every=0", "checkpoint.every=10", "start.run_id=tiny"}) {
    const Outcome outcome = training_.Run();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    before_ = ContentsOf(run_dir() + "/checkpoints");
    EXPECT_LT(ReadText(run_dir() + "/attempts/0001/plan.shardc").size(), Limit);
    EXPECT_GT(before_.at("step-00000020/rank-00000.safetensors").size(), Limit);
  }

  auto run_dir() const -> std::string { return training_ / "run"; }

  /// Goes on with the run where no file of a rank can be written.
  auto GoOn(const Sets& sets) -> Outcome {
    return RunProcess(training_.RunCommand("run", sets), {.before_exec = [] {
                        const rlimit limit{.rlim_cur = Limit, .rlim_max = Limit};
                        setrlimit(RLIMIT_FSIZE, &limit);
                      }});
  }

  auto ExpectOlderOnesAsTheyWere() -> void {
    EXPECT_TRUE(ContentsOf(run_dir() + "/checkpoints") == before_);
    EXPECT_THAT(UnfinishedSavesOf(run_dir()), IsEmpty()) << "the disk space is given back";
  }

  Training training_;
  decltype(ContentsOf("")) before_;
};

TEST_F(FailedSaves, LeaveTheOlderOnes) {
  const Outcome outcome = GoOn({"train.steps=30"});
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint of step 30 not committed: "));
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_THAT(outcome.err, HasSubstr("older checkpoints stand"));
  ExpectOlderOnesAsTheyWere();
  EXPECT_EQ(training_.Run("run", {"train.steps=30"}).status, 0);
  EXPECT_EQ(CheckpointsOf(run_dir()).back(), "step-00000030");
}

TEST_F(FailedSaves, EndARunThatGoesOnAtTheThirdInARow) {
  const auto run_to = [&](int64_t steps) {
    return GoOn({fmt::format("train.steps={}", steps), "checkpoint.every=2", "checkpoint.on_failure=continue"});
  };
  const Outcome third = run_to(40);
  EXPECT_EQ(third.status, 6) << third.err;
  for (const int64_t step : {22, 24}) {
    EXPECT_THAT(third.err, AllOf(HasSubstr(fmt::format("warning: step {} section save ", step)),
                                 HasSubstr(fmt::format("checkpoint of step {} not committed: ", step))));
  }
  EXPECT_THAT(third.err, HasSubstr("the run goes on, as `checkpoint.on_failure` is \"continue\""));
  EXPECT_THAT(third.err,
              AllOf(HasSubstr("checkpoint of step 26 not committed: "), HasSubstr("; 3 saves in a row have failed")));
  // A save at the end is no save on the way, even where one on the way is due at the same step.
  const Outcome last = run_to(22);
  EXPECT_EQ(last.status, 6) << last.err;
  EXPECT_THAT(last.err, HasSubstr("error: "));
  ExpectOlderOnesAsTheyWere();
  ASSERT_EQ(training_.Run("run", {"train.steps=22"}).status, 0);
  EXPECT_EQ(CheckpointsOf(run_dir()).back(), "step-00000022");
}

}  // namespace
}  // namespace shardc
