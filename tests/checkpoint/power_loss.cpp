// A loss of power at any moment of a save: after each call that the ranks make, each state that may be found afterwards
// (tests/support/power_loss.h) starts from the newest checkpoint that the run was told of, or a newer one. And each
// fsync is needed for that: where one is left out, some state does not.
#include <gtest/gtest.h>

#include <string>

#include "runtime/checkpoint/find_newest.h"
#include "runtime/checkpoint/leftovers.h"
#include "tests/checkpoint/world.h"
#include "tests/support/nightly.h"
#include "tests/support/power_loss.h"

namespace shardc {
namespace {

constexpr int64_t NumRanks = 2;
/// So that the file of a rank has several pages.
constexpr int64_t Vocab = 301;

class PowerLoss : public testing::Test {
 protected:
  /// Saves step 1, which lies on the disk then, and records saves of steps 2 and 3. At most one checkpoint is kept.
  PowerLoss() : plan_(SmallPlan(Mesh{{1, NumRanks, 1}}, folder_.path(), true, Vocab)) {
    plan_.run.checkpoint_keep = 1;
    const Status first = SaveSmall(plan_, 1);
    CHECK(first.ok(), "{}", first.error().message);
    fs_.emplace(folder_.path());
    for (const int64_t step : {2, 3}) {
      fs_->Tell(step - 1);
      for (const Status& saved : SaveSmall(plan_, step, [&](int64_t) -> Fs& { return *fs_; })) {
        CHECK(saved.ok(), "{}", saved.error().message);
      }
    }
    fs_->Tell(3);
  }

  /// Starts as a new process would. Returns what is wrong; "" if the run goes on from a step of `told` or later.
  auto StartAgain(const std::string& dir, int64_t told) const -> std::string {
    Plan plan = plan_;
    plan.run.checkpoint_dir = dir;
    static_cast<void>(RemoveAbandoned(dir, plan.run.run_id));
    int64_t step = -1;
    std::string refused;
    OnRanks(plan, [&](RankControl& control) {
      const auto newest = ChooseNewest(dir, plan.run.run_id, control);
      if (control.rank() == 0) {
        refused = newest ? "" : newest.error().message;
        step = newest && *newest ? (*newest)->step : -1;
      }
    });
    if (!refused.empty() || step < told) {
      return fmt::format("step {} is found, and step {} was there; {}", step, told, refused);
    }
    return LoadSmall(plan, dir + "/" + CheckpointName(step), step);
  }
  auto judge() const { return std::bind_front(&PowerLoss::StartAgain, this); }

  TemporaryFolder folder_;
  Plan plan_;
  std::optional<RecordingFs> fs_;
};

TEST_F(PowerLoss, LeavesACheckpointThatTheRunGoesOnFrom) {
  const LossJudgement found = JudgeLosses(fs_->begin(), fs_->changes(), fs_->told(), IsNightly() ? 1000 : 60, judge());
  EXPECT_EQ(found.wrong, "");
  EXPECT_GT(found.states, 500);
  RecordProperty("states", static_cast<int>(found.states));
}

TEST_F(PowerLoss, EachFsyncOfASaveIsNeeded) {
  EXPECT_EQ(NeedlessSyncs(*fs_, IsNightly() ? 200 : 20, judge()), std::vector<int>{});
}

// The lease of a machine that went down: whatever is left of it, another one takes the directory.
TEST(LeasePowerLoss, LeavesADirectoryThatCanBeTaken) {
  const auto acquire = [](const std::string& dir, Fs& fs) {
    LeaseOptions options;
    options.beats_at_once = false;
    options.stale_after = Seconds{0.02};
    options.poll = Seconds{0.005};
    options.fs = &fs;
    return Lease::Acquire(dir, "small", options);
  };
  const std::string boot = ThisProcess().boot_id;
  const TemporaryFolder folder;
  RecordingFs fs(folder.path());
  for (int i = 0; i < 2; ++i) {
    // Taken and given back.
    EXPECT_TRUE(acquire(folder.path(), fs).ok());
  }
  WriteText(folder / LeaseName, "no lease");
  RecordingFs taker(folder.path());
  EXPECT_TRUE(acquire(folder.path(), taker).ok());
  for (const RecordingFs* recorded : {&fs, &taker}) {
    const LossJudgement found =
        JudgeLosses(recorded->begin(), recorded->changes(), 0, IsNightly() ? 2000 : 20,
                    [&](const std::string& dir, int64_t) -> std::string {
                      // The machine has started again.
                      for (const auto& entry : std::filesystem::directory_iterator(dir)) {
                        std::string text = ReadText(entry.path());
                        if (const auto at = text.find(boot); at != std::string::npos) {
                          WriteText(entry.path(), text.replace(at, boot.size(), std::string(boot.size(), '0')));
                        }
                      }
                      const auto lease = acquire(dir, PosixFs());
                      return lease ? "" : lease.error().message;
                    });
    EXPECT_EQ(found.wrong, "");
    EXPECT_GT(found.states, 10);
  }
}

}  // namespace
}  // namespace shardc
