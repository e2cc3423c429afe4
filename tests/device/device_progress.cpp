// How a rank waits for a device whose kernels return early, with a device that is played.
#include "runtime/device/device_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

namespace shardc {
namespace {

using testing::HasSubstr;

/// Names turns, and has none to run.
class Names final : public Turns {
 public:
  auto RunTurn(size_t, const Moment&) -> Status override { return Success{}; }
  auto NameOfTurn(size_t index) const -> std::string override { return fmt::format("op {} add", index); }
};

/// A device that passes so many of its marks as the test says.
class DeviceProgressTest : public testing::Test {
 protected:
  static constexpr int64_t PerMark = DeviceProgress::TurnsPerMark;

  auto Make(bool waits_by_op = false) -> DeviceProgress {
    return DeviceProgress({.look = [this]() -> Status {
                             ++num_looks_;
                             return looked_;
                           },
                           .timeout = timeout_,
                           .waits_by_op = waits_by_op,
                           .has_come_to_mark = [this](size_t slot) -> ErrorOr<bool> {
                             RETURN_IF_ERROR(state_);
                             return left_at_[slot] <= num_passed_;
                           }});
  }
  auto Enqueue(DeviceProgress& progress, int64_t turns) -> Status {
    for (int64_t i = 0; i < turns; ++i) {
      progress.BeginTurn(names_, static_cast<size_t>(next_turn_++));
      RETURN_IF_ERROR(progress.EndTurn([this](size_t slot) -> Status {
        left_at_[slot] = ++num_left_;
        return Success{};
      }));
    }
    return Success{};
  }
  static auto MessageOf(const Status& status) -> std::string { return status ? "" : status.error().message; }

  Names names_;
  Seconds timeout_{600};
  Status looked_ = Success{};
  int num_looks_ = 0;
  /// The device's: an error, or all is well.
  Status state_ = Success{};
  int64_t num_left_ = 0;
  int64_t num_passed_ = 0;
  int64_t next_turn_ = 0;
  /// By slot: which of all marks it has.
  std::array<int64_t, DeviceProgress::NumMarks> left_at_{};
};

TEST_F(DeviceProgressTest, WaitsUntilOver) {
  DeviceProgress progress = Make();
  int asked = 0;
  EXPECT_TRUE(progress.Wait([&] { return ErrorOr<bool>(++asked == 1000); }).ok());
  EXPECT_EQ(asked, 1000);
  EXPECT_FALSE(progress.is_lost());
}

TEST_F(DeviceProgressTest, ErrorIsBetweenMarks) {
  DeviceProgress progress = Make();
  progress.BeginSection({.section = SectionKind::Step, .step = 12});
  ASSERT_TRUE(Enqueue(progress, 3 * PerMark + 10).ok());
  num_passed_ = 2;
  int asked = 0;
  const Status status = progress.Wait([&]() -> ErrorOr<bool> {
    if (++asked == 2) {
      state_ = Fail(ExitCode::Environment, "the GPU: misaligned address");
    }
    RETURN_IF_ERROR(state_);
    return false;
  });
  EXPECT_EQ(MessageOf(status),
            "the GPU: misaligned address, between op 127 add and op 201 add of section step, step 12; "
            "run.device_checks = true finds the op");
  EXPECT_TRUE(progress.is_lost());
}

TEST_F(DeviceProgressTest, ErrorAfterEachOpNamesNone) {
  DeviceProgress progress = Make(/*waits_by_op=*/true);
  ASSERT_TRUE(Enqueue(progress, 5).ok());
  const auto fails = []() -> ErrorOr<bool> { return Fail(ExitCode::Environment, "the GPU: misaligned address"); };
  EXPECT_EQ(MessageOf(progress.Wait(fails)), "the GPU: misaligned address");
}

TEST_F(DeviceProgressTest, ErrorBetweenSectionsNamesSection) {
  DeviceProgress progress = Make();
  progress.BeginSection({.section = SectionKind::Eval, .step = 7});
  ASSERT_TRUE(Enqueue(progress, 5).ok());
  progress.EndSection();
  const auto fails = []() -> ErrorOr<bool> { return Fail(ExitCode::Environment, "the GPU: misaligned address"); };
  EXPECT_EQ(MessageOf(progress.Wait(fails)), "the GPU: misaligned address, after section eval, step 7");
}

TEST_F(DeviceProgressTest, HangNamesLastMark) {
  timeout_ = Seconds{0.2};
  DeviceProgress progress = Make();
  progress.BeginSection({.section = SectionKind::Step, .step = 12});
  ASSERT_TRUE(Enqueue(progress, 2 * PerMark).ok());
  const auto never = [] { return ErrorOr<bool>(false); };
  EXPECT_EQ(MessageOf(progress.Wait(never)),
            "the GPU did not get beyond the beginning of section step, step 12 in 0.2 s");
  EXPECT_TRUE(progress.is_lost());
  num_passed_ = 1;
  EXPECT_EQ(MessageOf(progress.Wait(never)), "the GPU did not get beyond op 63 add of section step, step 12 in 0.2 s");
  progress.NoteAllOver();
  EXPECT_THAT(MessageOf(progress.Wait(never)), HasSubstr("beyond op 127 add"));
}

TEST_F(DeviceProgressTest, MarkGivesMoreTime) {
  timeout_ = Seconds{0.5};
  DeviceProgress progress = Make();
  ASSERT_TRUE(Enqueue(progress, 4 * PerMark).ok());
  const auto begin = std::chrono::steady_clock::now();
  const auto status = progress.Wait([&] {
    const auto since = std::chrono::steady_clock::now() - begin;
    num_passed_ = since / std::chrono::milliseconds(200);
    return ErrorOr<bool>(num_passed_ == 4);
  });
  EXPECT_TRUE(status.ok()) << MessageOf(status);
}

TEST_F(DeviceProgressTest, FailureOfOthersEndsWait) {
  DeviceProgress progress = Make();
  looked_ = Fail(ExitCode::Environment, "rank 1 is gone");
  EXPECT_EQ(MessageOf(progress.Wait([] { return ErrorOr<bool>(false); })), "rank 1 is gone");
  EXPECT_EQ(num_looks_, 1);
  EXPECT_TRUE(progress.is_lost());
}

TEST_F(DeviceProgressTest, ErrorBesideQueuesEndsWait) {
  timeout_ = Seconds{0.1};
  DeviceProgress progress = Make();
  Status beside = Success{};
  progress.LookAlso({.look = [&] { return beside; }, .hint = [] { return "; a peer is late"; }});
  progress.BeginSection({.section = SectionKind::Step, .step = 12});
  ASSERT_TRUE(Enqueue(progress, 2).ok());
  const auto is_over = [] { return ErrorOr<bool>(false); };
  EXPECT_THAT(MessageOf(progress.Wait(is_over)), HasSubstr(" in 0.1 s; a peer is late"));
  beside = Fail(ExitCode::Environment, "a peer is gone");
  EXPECT_THAT(MessageOf(progress.Wait(is_over)), HasSubstr("a peer is gone, "));
  EXPECT_TRUE(progress.is_lost());
}

TEST_F(DeviceProgressTest, RankIsNeverFarAhead) {
  timeout_ = Seconds{0.1};
  DeviceProgress progress = Make();
  const int64_t most = (DeviceProgress::NumMarks + 1) * PerMark - 1;
  ASSERT_TRUE(Enqueue(progress, most).ok());
  EXPECT_THAT(MessageOf(Enqueue(progress, 1)), HasSubstr("did not get beyond the beginning"));
  num_passed_ = 3;
  EXPECT_TRUE(Enqueue(progress, 3 * PerMark).ok());
  EXPECT_FALSE(Enqueue(progress, PerMark).ok());
}

}  // namespace
}  // namespace shardc
