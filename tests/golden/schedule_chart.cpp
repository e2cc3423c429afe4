// What explain shows of a schedule: the points, the most between them, and where it has no value.

#include "compiler/report/schedule_chart.h"

#include <gtest/gtest.h>

#include <set>

namespace shardc {
namespace {

auto Schedule(std::string expression, int64_t steps) -> ScheduleUse {
  Plan plan;
  plan.run.steps = steps;
  plan.scalars.Add({"step", ScalarKind::State, ""});
  plan.scalars.Add({"lr", ScalarKind::Schedule, std::move(expression)});
  const std::vector<ScheduleUse> schedules = SchedulesOf(plan);
  CHECK(schedules.size() == 1, "{}", schedules.size());
  EXPECT_EQ(schedules[0].name, "lr");
  return schedules[0];
}

TEST(ScheduleChart, ShowsEveryStepOfAShortRun) {
  const ScheduleUse use = Schedule("step / 2", 4);
  EXPECT_EQ(use.points, (std::vector<SchedulePoint>{{0, 0}, {1, 0.5}, {2, 1}, {3, 1.5}}));
  EXPECT_EQ(use.most, (SchedulePoint{3, 1.5}));
  EXPECT_FALSE(use.is_constant);
  EXPECT_EQ(ChartText(use),
            "  1.5 |   *\n"
            "      |\n"
            "      |  *\n"
            "      |\n"
            "      | *\n"
            "      |\n"
            "    0 +*---\n"
            "       0  3\n");
}

TEST(ScheduleChart, SpreadsItsPointsOverALongRun) {
  for (const int64_t steps : {1, 2, 59, 60, 61, 959, 960, 961, 100'000}) {
    const ScheduleUse use = Schedule("step", steps);
    ASSERT_EQ(use.points.size(), static_cast<size_t>(std::min<int64_t>(steps, 60))) << steps;
    EXPECT_EQ(use.points.front().step, 0) << steps;
    EXPECT_EQ(use.points.back().step, steps - 1) << steps;
    std::set<int64_t> gaps;
    for (size_t i = 1; i < use.points.size(); ++i) {
      EXPECT_EQ(use.points[i].value, static_cast<double>(use.points[i].step));
      gaps.insert(use.points[i].step - use.points[i - 1].step);
    }
    // Sixteen samples a column, one of them chosen.
    EXPECT_TRUE(gaps.empty() || *gaps.rbegin() - *gaps.begin() <= 1 + steps / 900) << steps;
  }
  // The greatest number of steps that a recipe may have.
  EXPECT_EQ(Schedule("step", 1'099'511'627'776).points.back().step, 1'099'511'627'775);
}

TEST(ScheduleChart, FindsTheMostBetweenColumns) {
  // Of 600 steps 60 are columns, 3 not among them.
  const ScheduleUse use = Schedule("if step == 3 then 7 else 1", 600);
  EXPECT_EQ(use.most, (SchedulePoint{3, 7}));
  for (const SchedulePoint& point : use.points) {
    EXPECT_EQ(point.value, 1);
  }
}

TEST(ScheduleChart, EndsWhereThereIsNoValue) {
  const ScheduleUse use = Schedule("1 / (step - 30)^2", 60);
  EXPECT_EQ(use.points.size(), 30U);
  EXPECT_EQ(use.fault, "at step 30: division by zero: `(step - 30)^2` is 0");
  const ScheduleUse negative = Schedule("1 - step", 60);
  EXPECT_EQ(negative.points.size(), 2U);
  EXPECT_EQ(negative.fault, "at step 2: -1 is negative");
  const ScheduleUse nowhere = Schedule("1 / 0 * step", 60);
  EXPECT_TRUE(nowhere.points.empty());
  EXPECT_EQ(nowhere.fault, "at step 0: division by zero: `0` is 0");
}

TEST(ScheduleChart, KnowsWhatDoesNotDependOnTheStep) {
  EXPECT_TRUE(Schedule("1e-3", 10).is_constant);
  EXPECT_TRUE(Schedule("let a = 2 in a / steps", 10).is_constant);
  EXPECT_FALSE(Schedule("warmup(3)", 10).is_constant);
  EXPECT_EQ(ChartText(Schedule("0 * step", 2)), "  0 |\n    |\n    |\n    |\n    |\n    |\n  0 +**\n     0 1\n");
}

}  // namespace
}  // namespace shardc
