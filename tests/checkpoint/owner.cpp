// Saves of a process that owns the directory, of one that was stopped and replaced, and of one whose lease is gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "runtime/checkpoint/leftovers.h"
#include "runtime/checkpoint/own_checkpoints.h"
#include "tests/checkpoint/world.h"
#include "tests/support/fault_fs.h"
#include "tests/support/nightly.h"
#include "tests/support/temporary_folder.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::HasSubstr;

auto ShortTimes() -> LeaseOptions {
  return {.what = "checkpoint directory",
          .beat = Seconds{0.01},
          .stale_after = Seconds{0.08},
          .poll = Seconds{0.005},
          .while_waiting = {},
          .note = {}};
}

/// A save of all ranks under a lease; rank 0's calls go through `fs`.
auto SaveOwned(const Plan& plan, int64_t step, const Lease* lease, Fs& fs = PosixFs()) -> Status {
  Status result = Success{};
  OnRanks(plan, [&](RankControl& control) {
    const bool leads = control.rank() == 0;
    CheckpointWriter writer({.plan = &plan,
                             .control = &control,
                             .plan_hash = SmallPlanHash,
                             .data_fingerprint = SmallFingerprint,
                             .fs = leads ? &fs : &PosixFs()});
    writer.UseLease(leads ? lease : nullptr);
    const Status saved = SaveWith(writer, plan, control.rank(), step);
    if (leads) {
      result = saved;
    }
  });
  return result;
}

auto ContentsOf(const std::string& folder) -> std::map<std::string, std::string> {
  std::map<std::string, std::string> contents;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    // The count in the lease continues.
    if (entry.is_regular_file() && entry.path().filename() != "lease.json") {
      contents[entry.path().string()] = ReadText(entry.path().string());
    }
  }
  return contents;
}

TEST(Owner, NamesUnderWayAreItsOwn) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  const auto lease = Lease::Acquire(folder.path(), "small", ShortTimes());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  OnRanks(plan, [&](RankControl& control) {
    CheckpointWriter writer({.plan = &plan, .control = &control, .plan_hash = SmallPlanHash});
    writer.UseLease(control.rank() == 0 ? lease->get() : nullptr);
    ASSERT_TRUE(writer.Begin(3, {{"step", 3}}).ok());
    EXPECT_TRUE(std::filesystem::exists(folder / ("step-00000003.tmp-small~" + (*lease)->token().substr(0, 8))));
    EXPECT_FALSE(writer.Commit().ok());
  });
  EXPECT_EQ(StepsIn(folder.path()), std::vector<std::string>{"lease.json"});
}

/// The owner is stopped before each of its file-system calls in turn, loses the directory, and is woken when the new
/// owner has saved the same step.
TEST(Owner, OneThatIsStoppedAtAnyCallTouchesNothingWhenItWakesUp) {
  int64_t num_stopped = 0;
  int64_t num_told = 0;
  int64_t num_committed = 0;
  for (const bool is_there : {false, true}) {
    for (int64_t n = 1;; n += Stride(5)) {
      SCOPED_TRACE(fmt::format("call {}{}", n, is_there ? ", the step is there already" : ""));
      const TemporaryFolder folder;
      const TemporaryFolder notes;
      Plan plan = SmallPlan(2, folder.path());
      ASSERT_TRUE(SaveSmall(plan, 1).ok());
      if (is_there) {
        ASSERT_TRUE(SaveSmall(plan, 2).ok());
      }
      plan.run.checkpoint_keep = 1;
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        const auto lease = Lease::Acquire(folder.path(), "small", ShortTimes());
        FaultFs stopping({.stop_before = n});
        const Status saved = lease ? SaveOwned(plan, 2, lease->get(), stopping) : lease.error();
        WriteText(notes / "said", saved.ok() ? "saved" : saved.error().message);
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
      if (!WIFSTOPPED(status)) {
        EXPECT_EQ(ReadText(notes / "said"), "saved");
        break;
      }
      ++num_stopped;
      {
        const auto lease = Lease::Acquire(folder.path(), "small", ShortTimes());
        ASSERT_TRUE(lease.ok()) << lease.error().message;
        EXPECT_TRUE(RemoveAbandoned(folder.path(), "small").empty());
        // Another content, as of a run that continued otherwise.
        plan.data.seed = 7;
        const Status saved = SaveOwned(plan, 2, lease->get());
        ASSERT_TRUE(saved.ok()) << saved.error().message;
        const auto before = ContentsOf(folder.path());

        kill(child, SIGCONT);
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status));
        EXPECT_EQ(ContentsOf(folder.path()), before);
        EXPECT_TRUE((*lease)->Check().ok());
      }
      EXPECT_EQ(LoadSmall(plan, folder / "step-00000002", 2), "");
      const std::string said = ReadText(notes / "said");
      if (said == "saved") {
        // It had committed before it was stopped; its step is the one that was replaced.
        ++num_committed;
        EXPECT_TRUE(std::filesystem::exists(folder / "step-00000002.replaced-1"));
      } else {
        EXPECT_THAT(said, testing::StartsWith("checkpoint of step 2 not "));
        num_told += said.find("was taken over by run small") != std::string::npos ? 1 : 0;
      }
      if (testing::Test::HasFailure()) {
        return;
      }
    }
  }
  EXPECT_GE(num_stopped, 50 / Stride(5));
  EXPECT_GE(num_told, num_stopped / 2);
  EXPECT_GE(num_committed, 4 / Stride(4));
}

TEST(Owner, WithoutItsLeaseItDoesNotSave) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(2, folder.path());
  const auto lease = Lease::Acquire(folder.path(), "small", ShortTimes());
  ASSERT_TRUE(lease.ok()) << lease.error().message;
  ASSERT_TRUE(SaveOwned(plan, 1, lease->get()).ok());
  std::filesystem::remove(folder / "lease.json");
  const Status gone = SaveOwned(plan, 2, lease->get());
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, ExitCode::Environment);
  EXPECT_THAT(gone.error().message,
              AllOf(HasSubstr("checkpoint of step 2 not written"), HasSubstr("its lease.json was removed")));
  EXPECT_EQ(StepsIn(folder.path()), std::vector<std::string>{"step-00000001"});
}

TEST(Owner, AllRanksWaitAndHearTheSame) {
  const TemporaryFolder folder;
  const Plan plan = SmallPlan(3, folder.path());
  WriteText(folder / "lease.json", "");
  std::filesystem::create_directory(folder / "step-00000006.tmp-small");
  std::filesystem::create_directory(folder / "step-00000006.tmp-small~01234567");
  std::filesystem::create_directory(folder / "step-00000006.tmp-other~01234567");
  std::unique_ptr<Lease> held;
  OnRanks(plan, [&](RankControl& control) {
    auto owner = OwnCheckpoints(folder.path(), "small", control, ShortTimes());
    ASSERT_TRUE(owner.ok()) << owner.error().message;
    EXPECT_EQ(owner->lease != nullptr, control.rank() == 0);
    if (owner->lease) {
      held = std::move(owner->lease);
    }
  });
  EXPECT_EQ(StepsIn(folder.path()), (std::vector<std::string>{"lease.json", "step-00000006.tmp-other~01234567"}));
  OnRanks(plan, [&](RankControl& control) {
    const auto second = OwnCheckpoints(folder.path(), "another", control, ShortTimes());
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.error().code, ExitCode::Environment);
    EXPECT_THAT(second.error().message,
                AllOf(HasSubstr("is in use by run small on host "),
                      HasSubstr("; wait until that has ended, or set `checkpoint.dir` to another folder")));
  });
}

}  // namespace
}  // namespace shardc
