// A rank that holds another plan than the rest: refused before the first collective of a section, with the fields that
// differ, on all ranks alike.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/control/agree_on_plan.h"
#include "runtime/core/runner.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// What each of three ranks says, the last two of which hold `other`.
auto ErrorsOf(const Plan& plan, const Plan& other) -> std::vector<std::string> {
  std::vector<std::string> errors(3);
  const auto code = LaunchThreads(plan, {}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    context.plan = context.rank == 0 ? &plan : &other;
    const auto runner = RankRunner::Create(context);
    if (runner) {
      return ExitCode::Ok;
    }
    errors[static_cast<size_t>(context.rank)] = runner.error().message;
    return runner.error();
  });
  CHECK(code.ok(), "{}", code.error().message);
  EXPECT_EQ(*code, errors[0].empty() ? ExitCode::Ok : ExitCode::Environment);
  return errors;
}

TEST(OtherPlan, DifferingFieldsAreShown) {
  const Training training({"mesh.dp=3"});
  const Plan plan = training.Compile();
  EXPECT_THAT(ErrorsOf(plan, plan), Each(""));
  EXPECT_THAT(ErrorsOf(plan, training.Compile({"init.seed=8"})),
              Each(AllOf(HasSubstr("rank 1: has another plan than rank 0: line "),
                         HasSubstr(", run: init_seed=7 on rank 0, init_seed=8 here"), Not(HasSubstr(";")))));
  // More lines than are shown.
  EXPECT_THAT(ErrorsOf(plan, training.Compile({"model.hidden=64"})),
              Each(AllOf(HasSubstr(", model: head_dim=16 hidden=32 on rank 0, head_dim=32 hidden=64 here"),
                         HasSubstr("; line "))));
}

TEST(OtherPlan, OnlyWhatIsComputedCounts) {
  const Training training({"mesh.dp=3"});
  const Plan plan = training.Compile();
  Plan elsewhere = plan;
  elsewhere.run.run_dir = "/elsewhere";
  elsewhere.overrides = {"mesh.dp=3", "train.steps=40"};
  EXPECT_THAT(ErrorsOf(plan, elsewhere), Each(""));
}

TEST(OtherPlan, TextsOfDifferentLength) {
  EXPECT_EQ(DifferencesOf("a x=1\nb\n", "a x=2\n"),
            "line 1, a: x=1 on rank 0, x=2 here; line 2, b: b on rank 0, nothing here");
  EXPECT_EQ(DifferencesOf("a\nb\n", "a\nb\n"), "");
}

}  // namespace
}  // namespace shardc
