// Values or errors, and the two ways in which misuse ends the process.

#include <gtest/gtest.h>

#include <memory>

#include "compiler/base/error_or.h"

namespace shardc {
namespace {

auto Half(int n) -> ErrorOr<int> {
  if (n % 2 != 0) {
    return Fail(ExitCode::Usage, "{} is odd", n);
  }
  return n / 2;
}

auto Quarter(int n, int& num_runs) -> ErrorOr<int> {
  RETURN_IF_ERROR(Half(n));
  ++num_runs;
  return Half(*Half(n));
}

TEST(ErrorOr, HoldsAValueOrAnError) {
  const auto half = Half(6);
  ASSERT_TRUE(half.ok());
  EXPECT_EQ(*half, 3);
  const auto odd = Half(7);
  EXPECT_FALSE(odd);
  EXPECT_EQ(odd.error().code, ExitCode::Usage);
  EXPECT_EQ(odd.error().message, "7 is odd");
}

TEST(ErrorOr, ReturnIfErrorPassesTheErrorOn) {
  int num_runs = 0;
  EXPECT_EQ(*Quarter(12, num_runs), 3);
  EXPECT_EQ(num_runs, 1);
  EXPECT_EQ(Quarter(9, num_runs).error().message, "9 is odd");
  EXPECT_EQ(num_runs, 1);
  EXPECT_EQ(Quarter(6, num_runs).error().message, "3 is odd");
}

auto Eighth(int n, int& quarter) -> ErrorOr<int> {
  ASSIGN_OR_RETURN(const int half, Half(n));
  ASSIGN_OR_RETURN(quarter, Half(half));
  return Half(quarter);
}

TEST(ErrorOr, ValueIsAssignedOrErrorReturned) {
  int quarter = 0;
  EXPECT_EQ(*Eighth(16, quarter), 2);
  EXPECT_EQ(quarter, 4);
  EXPECT_EQ(Eighth(6, quarter).error().message, "3 is odd");
  EXPECT_EQ(quarter, 4);
}

TEST(ErrorOr, MovesWhatCannotBeCopied) {
  ErrorOr<std::unique_ptr<int>> made(std::make_unique<int>(5));
  EXPECT_EQ(**made, 5);
  const std::unique_ptr<int> taken = *std::move(made);
  EXPECT_EQ(*taken, 5);
}

TEST(ErrorOr, StatusIsSuccessOrAnError) {
  EXPECT_TRUE(Status(Success{}).ok());
  EXPECT_FALSE(Status(Fail(ExitCode::Environment, "no")).ok());
}

TEST(ErrorOrDeathTest, TakingWhatIsNotThereIsABug) {
  EXPECT_EXIT(Half(7).value(), testing::ExitedWithCode(1), "value of an error: 7 is odd");
  EXPECT_EXIT((void)Half(6).error(), testing::ExitedWithCode(1), "error\\(\\) of a value");
}

TEST(CheckDeathTest, PrintsTheFactAndWhatWasGoingOn) {
  EXPECT_EXIT(
      {
        SetCheckContext("pass schedule, op 7");
        CHECK(1 + 1 == 3, "sum {}", 2);
      },
      testing::ExitedWithCode(1),
      "CHECK failed: 1 \\+ 1 == 3: sum 2\nwhile: pass schedule, op 7\nthis is a bug in shardc");
}

}  // namespace
}  // namespace shardc
