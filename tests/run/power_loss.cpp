// What a loss of power leaves of the record of a run (tests/support/power_loss.h).
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/plan/text.h"
#include "runtime/record/attempt.h"
#include "runtime/record/save_record.h"
#include "tests/support/nightly.h"
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

// The files of each attempt that was begun are there whole, with its end if that was recorded, and the next one gets a
// number of its own.
TEST(RecordPowerLoss, LeavesTheAttemptsThatWereTold) {
  Plan plan;
  plan.run.run_id = "small";
  plan.recipe = {{.key = "model.layers", .value = "2"}};
  const TemporaryFolder folder;
  RecordingFs fs(folder.path());
  const auto directory = OpenDirectory(fs, folder.path());
  for (const int64_t number : {1, 2}) {
    const auto attempt = Attempt::Begin(*directory, plan, {.path = "small.toml", .recipe = "text"});
    ASSERT_TRUE(attempt.ok()) << attempt.error().message;
    fs.Tell(2 * number - 1);
    ASSERT_TRUE(attempt->RecordEnd(0, "", 7).ok());
    fs.Tell(2 * number);
  }
  const auto judge = [&](const std::string& dir, int64_t told) -> std::string {
    for (int64_t mark = 1; mark <= told; ++mark) {
      const std::string attempt = fmt::format("{}/{}/{}/", dir, AttemptsName, AttemptName((mark + 1) / 2));
      if (ReadText(attempt + "recipe.toml") != "text" || ReadText(attempt + "plan.shardc") != PrintPlan(plan) ||
          ReadText(attempt + ResolvedRecipeName) != "model.layers = 2\n" ||
          ReadText(attempt + AttemptFileName).empty()) {
        return fmt::format("{} is not whole", attempt);
      }
      if (mark % 2 == 0 && ReadText(attempt + AttemptFileName).find("ended_at") == std::string::npos) {
        return fmt::format("{} has no end", attempt);
      }
    }
    const auto opened = OpenDirectory(PosixFs(), dir);
    const auto next = Attempt::Begin(*opened, plan, {.path = "small.toml", .recipe = "text"});
    return !next ? next.error().message : next->number() > (told + 1) / 2 ? "" : "a number is used again";
  };
  // Each start after a loss says that the last launch did not end.
  testing::internal::CaptureStderr();
  const LossJudgement found = JudgeLosses(fs.begin(), fs.changes(), fs.told(), IsNightly() ? 2000 : 60, judge);
  const std::vector<int> needless = NeedlessSyncs(fs, IsNightly() ? 200 : 40, judge);
  testing::internal::GetCapturedStderr();
  EXPECT_EQ(found.wrong, "");
  EXPECT_GT(found.states, 100);
  EXPECT_EQ(needless, std::vector<int>{});
}

}  // namespace
}  // namespace shardc
