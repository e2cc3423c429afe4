// What a loss of power leaves of the record of a run (tests/support/power_loss.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/record/save_record.h"
#include "tests/support/power_loss.h"

namespace shardc {
namespace {

// The line of a save that the run was told of is there, and what is left of the next one does not hide it.
TEST(RecordPowerLoss, LeavesTheSavesThatWereTold) {
  const TemporaryFolder folder;
  RecordingFs fs(folder.path());
  const auto directory = OpenDirectory(fs, folder.path());
  for (const int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(PutSaveOnRecord(*directory, "small", {.step = step, .path = "/a/b", .attempt = 1}).ok());
    fs.Tell(step);
  }
  const auto judge = [](const std::string& dir, int64_t told) -> std::string {
    const auto opened = OpenDirectory(PosixFs(), dir);
    auto saves = SavesOf(*opened, "small");
    if (!saves || (saves->last ? saves->last->step : 0) < told) {
      return saves ? fmt::format("the save of step {} is not on record", told) : saves.error().message;
    }
    const Status next = PutSaveOnRecord(*opened, "small", {.step = 9, .path = "/a/b", .attempt = 2});
    saves = SavesOf(*opened, "small");
    return next.ok() && saves->last->step == 9 ? "" : "the next save is not on record";
  };
  const LossJudgement found = JudgeLosses(fs.begin(), fs.changes(), fs.told(), 1000, judge);
  EXPECT_EQ(found.wrong, "");
  EXPECT_GT(found.states, 4);
  EXPECT_EQ(NeedlessSyncs(fs, 1000, judge), std::vector<int>{});
}

}  // namespace
}  // namespace shardc
