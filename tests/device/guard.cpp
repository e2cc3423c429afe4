// The guard by itself, on a plan of bare buffers: paint, pages counted by their canaries, what it finds.
#include "runtime/device/guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "compiler/plan/red_zone.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Two transient buffers in the same place, one after the other, and a persistent one.
class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    first_ = Add(Arena::Transient, DType::F64, 1024);
    second_ = Add(Arena::Transient, DType::I32, 100);
    plan_.buffers[second_].offset = RedZoneBytes;
    kept_ = Add(Arena::Persistent, DType::F32, 5 * page_ / 4);
    auto shared = SharedArenas::Create(plan_.arena_bytes, {0, 1});
    CHECK(shared.ok(), "arenas");
    shared_ = *std::move(shared);
    auto device = MakeDevice(plan_, {.arenas = &shared_, .rank = 0});
    CHECK(device.ok(), "device");
    device_ = *std::move(device);
    auto guard = Guard::Create(plan_, *device_);
    CHECK(guard.ok(), "{}", guard.error().message);
    guard_ = *std::move(guard);
  }
  auto Add(Arena arena, DType dtype, int64_t count) -> BufferId {
    int64_t& end = plan_.arena_bytes[static_cast<size_t>(arena)];
    const Bytes bytes{count * SizeOf(dtype)};
    const BufferId id = plan_.buffers.Add({.name = "b", .arena = arena, .bytes = bytes, .offset = end + RedZoneBytes});
    end += RoundUp(bytes.value + 2 * RedZoneBytes, RedZoneBytes);
    plan_.values.Add({.buffer = id, .offset = RankExpr::Constant(0), .dtype = dtype, .shape = {count}, .name = "v"});
    return id;
  }
  template <class T>
  auto At(BufferId id) -> T* {
    return reinterpret_cast<T*>(device_->Base(plan_.buffers[id].arena) + plan_.buffers[id].offset);
  }
  static auto Writes(BufferId id) -> OpTouches { return {.touches = {{id, false}}, .name = "op 1 test"}; }
  static auto MessageOf(const Status& status) -> std::string { return status ? "" : status.error().message; }
  auto PagesOf(Arena arena) const -> PageUse { return (*guard_->MeasurePages())[static_cast<size_t>(arena)]; }

  const int64_t page_ = sysconf(_SC_PAGESIZE);
  Plan plan_;
  BufferId first_;
  BufferId second_;
  BufferId kept_;
  SharedArenas shared_;
  std::unique_ptr<RankDevice> device_;
  std::unique_ptr<Guard> guard_;
};

TEST_F(GuardTest, PaintIsASignallingNaNOfTheBuffersType) {
  const OpTouches op = Writes(first_);
  ASSERT_TRUE(guard_->BeforeOp(op).ok());
  uint64_t wide = 0;
  std::memcpy(&wide, At<double>(first_), sizeof(wide));
  EXPECT_TRUE(std::isnan(*At<double>(first_)));
  EXPECT_EQ(wide >> 51 & 1, 0U) << "quiet";
  uint32_t narrow = 0;
  std::memcpy(&narrow, At<float>(kept_), sizeof(narrow));
  EXPECT_TRUE(std::isnan(*At<float>(kept_)));
  EXPECT_EQ(narrow >> 22 & 1, 0U) << "quiet";
  ASSERT_TRUE(guard_->Release(first_).ok());
  ASSERT_TRUE(guard_->BeforeOp(Writes(second_)).ok());
  EXPECT_GT(*At<int32_t>(second_), 1 << 30);
}

TEST_F(GuardTest, CountsWrittenPages) {
  EXPECT_EQ(PagesOf(Arena::Persistent).written.value, 0);
  EXPECT_EQ(PagesOf(Arena::Persistent).with_buffers.value, 6 * page_) << "5 pages that begin after a zone";
  // The last byte of the buffer lies in the sixth page.
  At<std::byte>(kept_)[plan_.buffers[kept_].bytes.value - 1] = std::byte{1};
  EXPECT_EQ(PagesOf(Arena::Persistent).written.value, page_);
  At<float>(kept_)[0] = 1;
  EXPECT_EQ(PagesOf(Arena::Persistent).written.value, 2 * page_);

  const OpTouches op = Writes(first_);
  ASSERT_TRUE(guard_->BeforeOp(op).ok());
  At<double>(first_)[0] = 1;
  EXPECT_EQ(PagesOf(Arena::Transient).written.value, page_);
  ASSERT_TRUE(guard_->AfterOp(op).ok());
  ASSERT_TRUE(guard_->Release(first_).ok());
  EXPECT_EQ(PagesOf(Arena::Transient).written.value, page_) << "remembered beyond the release";
}

TEST_F(GuardTest, FindsWhatIsWrittenWhereNothingLives) {
  const OpTouches op = Writes(first_);
  ASSERT_TRUE(guard_->BeforeOp(op).ok());
  ASSERT_TRUE(guard_->Release(first_).ok());
  ASSERT_TRUE(guard_->EndSection().ok());
  At<std::byte>(first_)[17] = std::byte{3};
  const std::string expected = "it holds 0x03; the last there was $b (8192 bytes in the transient arena), byte 17";
  EXPECT_THAT(MessageOf(guard_->BeforeOp(Writes(second_))), HasSubstr(expected));
  EXPECT_THAT(MessageOf(guard_->EndSection()), HasSubstr(expected));
}

TEST_F(GuardTest, FindsWhatIsWrittenOutside) {
  const OpTouches op = Writes(second_);
  ASSERT_TRUE(guard_->BeforeOp(op).ok());
  At<std::byte>(second_)[400] = std::byte{3};
  EXPECT_THAT(MessageOf(guard_->AfterOp(op)), HasSubstr("byte 400 of $b#2 (400 bytes in the transient arena) lies "
                                                        "outside of it and was written by this op: it holds 0x03"));
  EXPECT_FALSE(guard_->Release(second_).ok());
  At<std::byte>(kept_)[-1] = std::byte{3};
  EXPECT_THAT(MessageOf(guard_->EndSection()), HasSubstr("byte"));
}

TEST_F(GuardTest, TwoBuffersInOnePlaceAtOneTimeAreRefused) {
  ASSERT_TRUE(guard_->BeforeOp(Writes(first_)).ok());
  EXPECT_THAT(MessageOf(guard_->BeforeOp(Writes(second_))), HasSubstr("no red zones between $b#2 and $b"));
}

TEST_F(GuardTest, ReadOfNothingIsRefused) {
  const OpTouches op{.touches = {{second_, true}}, .name = "op 1 test"};
  EXPECT_THAT(MessageOf(guard_->BeforeOp(op)), HasSubstr("op 1 test reads $b#2 (400 bytes in the transient arena)"));
}

}  // namespace
}  // namespace shardc
