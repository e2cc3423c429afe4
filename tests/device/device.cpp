// Both devices of a CPU program: in which order ops run, what a wait is for, when scalars change hands, and what the
// host reads and writes.
#include "runtime/device/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace shardc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr EventId First{0};
constexpr EventId Second{1};
constexpr ScalarId Counted{0};
constexpr uint64_t NumOrders = 100;

/// Notes which turns came, in their order.
class Notes final : public Turns {
 public:
  explicit Notes(RankDevice* device) : device_(*device) {}
  auto RunTurn(size_t index, const Moment& moment) -> Status override {
    if (index == fails) {
      return Fail(ExitCode::Environment, "turn {} fails", index);
    }
    came.push_back(index);
    repeats.push_back(moment.repeat);
    device_.scalars()[Counted] += 1;
    return Success{};
  }
  auto NameOfTurn(size_t index) const -> std::string override { return fmt::format("op {}", index); }
  auto At(size_t index) const -> int64_t { return std::ranges::find(came, index) - came.begin(); }

  std::vector<size_t> came;
  std::vector<int64_t> repeats;
  size_t fails = 1000;

 private:
  RankDevice& device_;
};

class DeviceTest : public testing::TestWithParam<bool> {
 protected:
  DeviceTest() {
    plan_.num_events = 2;
    plan_.scalars.Add({.name = "counted"});
    plan_.arena_bytes[static_cast<size_t>(Arena::Transient)] = 4096;
    auto arenas = SharedArenas::Create(plan_.arena_bytes, {0, 1});
    CHECK(arenas.ok(), "arenas");
    arenas_ = *std::move(arenas);
    auto device = MakeDevice(plan_, {.arenas = &arenas_, .rank = 0, .shuffles = shuffles()});
    CHECK(device.ok(), "device");
    device_ = *std::move(device);
  }
  static auto shuffles() -> bool { return GetParam(); }
  auto Begin(std::optional<uint64_t> order = {}) -> void {
    EXPECT_TRUE(device_->BeginSection({.section = SectionKind::Step, .step = 3, .order = order}, host_).ok());
  }
  auto End() -> Status { return device_->EndSection(host_); }
  auto Enqueue(Notes& notes, Stream stream, size_t index, int64_t repeat = 0) -> Status {
    return device_->queue(stream).Enqueue(notes, index, {.step = 3, .repeat = repeat});
  }
  static auto MessageOf(const Status& status) -> std::string { return status ? "" : status.error().message; }

  Plan plan_;
  SharedArenas arenas_;
  std::unique_ptr<RankDevice> device_;
  ScalarTable host_{1};
};

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& info) { return info.param ? "Shuffled" : "Inline"; });

TEST_P(DeviceTest, WithoutAnOrderOpsRunAtOnce) {
  Notes notes(device_.get());
  Begin();
  EXPECT_TRUE(Enqueue(notes, Stream::Compute, 0).ok());
  EXPECT_TRUE(Enqueue(notes, Stream::Dp, 1).ok());
  EXPECT_TRUE(Enqueue(notes, Stream::Compute, 2, 7).ok());
  EXPECT_THAT(notes.came, ElementsAre(0, 1, 2));
  EXPECT_THAT(notes.repeats, ElementsAre(0, 0, 7));
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(notes.came, ElementsAre(0, 1, 2));
}

TEST_P(DeviceTest, AnOrderIsForDevicesThatShuffle) {
  std::set<std::vector<size_t>> orders;
  for (uint64_t order = 0; order < NumOrders; ++order) {
    std::vector<std::vector<size_t>> twice;
    for (int i = 0; i < 2; ++i) {
      Notes notes(device_.get());
      Begin(order);
      for (const size_t index : {0U, 1U, 2U}) {
        EXPECT_TRUE(Enqueue(notes, Stream::Compute, index).ok());
        EXPECT_TRUE(Enqueue(notes, Stream::Dp, index + 10).ok());
      }
      EXPECT_EQ(notes.came.size(), shuffles() ? 0U : 6U);
      EXPECT_TRUE(End().ok());
      ASSERT_EQ(notes.came.size(), 6U);
      EXPECT_LT(notes.At(0), notes.At(1));
      EXPECT_LT(notes.At(1), notes.At(2));
      EXPECT_LT(notes.At(10), notes.At(11));
      EXPECT_LT(notes.At(11), notes.At(12));
      twice.push_back(notes.came);
    }
    EXPECT_EQ(twice[0], twice[1]) << "the same number gives the same order";
    orders.insert(twice[0]);
  }
  // Six turns on two streams have 20 legal orders.
  EXPECT_LE(orders.size(), shuffles() ? 20U : 1U);
  EXPECT_GE(orders.size(), shuffles() ? 15U : 1U);
}

TEST_P(DeviceTest, AWaitIsForTheLastSignalBeforeIt) {
  std::set<bool> first_before_third;
  for (uint64_t order = 0; order < NumOrders; ++order) {
    Notes notes(device_.get());
    Queue& compute = device_->queue(Stream::Compute);
    Queue& dp = device_->queue(Stream::Dp);
    Begin(order);
    // As two passes over a loop's body, each with the same event.
    for (const size_t pass : {0U, 1U}) {
      EXPECT_TRUE(Enqueue(notes, Stream::Compute, pass).ok());
      EXPECT_TRUE(compute.Signal(First).ok());
      EXPECT_TRUE(dp.Wait(First).ok());
      EXPECT_TRUE(Enqueue(notes, Stream::Dp, pass + 10).ok());
    }
    // Two waits for one signal, and a signal after nothing of its own.
    EXPECT_TRUE(dp.Signal(Second).ok());
    EXPECT_TRUE(compute.Wait(Second).ok());
    EXPECT_TRUE(compute.Wait(First).ok());
    EXPECT_TRUE(Enqueue(notes, Stream::Compute, 2).ok());
    EXPECT_TRUE(End().ok());
    ASSERT_EQ(notes.came.size(), 5U);
    EXPECT_LT(notes.At(0), notes.At(10));
    EXPECT_LT(notes.At(1), notes.At(11));
    EXPECT_EQ(notes.came.back(), 2U);
    first_before_third.insert(notes.At(10) < notes.At(1));
  }
  EXPECT_EQ(first_before_third.size(), shuffles() ? 2U : 1U) << "the first wait is for the first signal alone";
}

TEST_P(DeviceTest, AWaitForASignalThatNeverCameFails) {
  Queue& compute = device_->queue(Stream::Compute);
  const auto expected = HasSubstr("waits for event e1, which nothing has signalled in this section");
  for (const std::optional<uint64_t> order : {std::optional<uint64_t>(), std::optional<uint64_t>(5)}) {
    Begin(order);
    EXPECT_THAT(MessageOf(compute.Wait(Second)), expected);
    EXPECT_TRUE(compute.Signal(Second).ok());
    EXPECT_TRUE(device_->queue(Stream::Dp).Wait(Second).ok());
    EXPECT_TRUE(End().ok());
    // The signal of another section is none of this one.
    Begin(order);
    EXPECT_THAT(MessageOf(compute.Wait(Second)), expected);
    EXPECT_TRUE(End().ok());
  }
}

TEST_P(DeviceTest, AFailureEndsTheSection) {
  Notes notes(device_.get());
  notes.fails = 1;
  Begin(9);
  Status failed = Enqueue(notes, Stream::Compute, 1);
  EXPECT_EQ(failed.ok(), shuffles());
  if (failed) {
    EXPECT_TRUE(Enqueue(notes, Stream::Compute, 2).ok());
    failed = End();
  }
  EXPECT_EQ(MessageOf(failed), "turn 1 fails");
  EXPECT_THAT(notes.came, IsEmpty()) << "nothing runs after a failure";
  // What was left is not taken into the next section.
  Begin(9);
  EXPECT_TRUE(Enqueue(notes, Stream::Dp, 3).ok());
  EXPECT_TRUE(End().ok());
  EXPECT_THAT(notes.came, ElementsAre(3));
}

TEST_P(DeviceTest, ScalarsChangeHandsAtBothEndsOfASection) {
  Notes notes(device_.get());
  host_[Counted] = 40;
  host_.RequestStop();
  EXPECT_EQ(device_->scalars()[Counted], 0);
  Begin(1);
  EXPECT_EQ(device_->scalars()[Counted], 40);
  EXPECT_TRUE(device_->scalars().stop_requested());
  EXPECT_TRUE(Enqueue(notes, Stream::Compute, 0).ok());
  EXPECT_TRUE(Enqueue(notes, Stream::Dp, 1).ok());
  EXPECT_EQ(host_[Counted], 40) << "an op writes the device's table";
  EXPECT_TRUE(End().ok());
  EXPECT_EQ(host_[Counted], 42);
  host_[Counted] = 7;
  EXPECT_EQ(device_->scalars()[Counted], 42) << "the host writes its own";
}

TEST_P(DeviceTest, TheHostReadsAndWritesMemory) {
  std::byte* const memory = device_->Base(Arena::Transient) + 128;
  HostScratch scratch;
  Queue& queue = device_->queue(Stream::Host);
  std::byte* const to = queue.BeginWrite(memory, 100, scratch);
  EXPECT_EQ(to == memory, !shuffles()) << "a device that shuffles gives copies";
  std::fill_n(to, 100, std::byte{5});
  ASSERT_TRUE(queue.EndWrite(memory, 100, scratch).ok());
  EXPECT_EQ(std::count(memory, memory + 100, std::byte{5}), 100);
  EXPECT_EQ(memory[100], std::byte{0});

  memory[3] = std::byte{9};
  const auto read = device_->Read(memory, 100, scratch);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read == memory, !shuffles());
  EXPECT_EQ(std::memcmp(*read, memory, 100), 0);
  EXPECT_TRUE(device_->Read(memory, 0, scratch).ok());
}

/// A queue of a device with more memory than there is.
class EndlessQueue final : public Queue {
 public:
  auto Enqueue(Turns&, size_t, const Moment&) -> Status override { return Success{}; }
  auto Wait(EventId) -> Status override { return Success{}; }
  auto Signal(EventId) -> Status override { return Success{}; }
  auto Read(const std::byte* from, int64_t bytes, HostScratch&) -> ErrorOr<const std::byte*> override {
    if (sizes.size() == fails) {
      return Fail(ExitCode::Environment, "read {} fails", fails);
    }
    sizes.push_back(bytes);
    return from;
  }
  auto BeginWrite(std::byte* to, int64_t, HostScratch&) -> std::byte* override { return to; }
  auto EndWrite(std::byte*, int64_t, HostScratch&) -> Status override { return Success{}; }

  std::vector<int64_t> sizes;
  size_t fails = 1000;
};

TEST(Queue, ReadsInPieces) {
  EndlessQueue queue;
  HostScratch scratch;
  std::vector<int64_t> begins;
  const auto* const first = reinterpret_cast<const std::byte*>(uintptr_t{1} << 40U);
  const auto note = [&](const std::byte* piece, int64_t begin, int64_t size) -> Status {
    EXPECT_EQ(piece, first + begin);
    EXPECT_EQ(size, queue.sizes.back());
    begins.push_back(begin);
    return Success{};
  };
  EXPECT_TRUE(queue.ReadInPieces(first, 2 * PieceBytes + 8, scratch, note).ok());
  EXPECT_THAT(begins, ElementsAre(0, PieceBytes, 2 * PieceBytes));
  EXPECT_THAT(queue.sizes, ElementsAre(PieceBytes, PieceBytes, 8));
  queue.fails = 4;
  EXPECT_EQ(queue.ReadInPieces(first, 2 * PieceBytes, scratch, note).error().message, "read 4 fails");
  EXPECT_EQ(begins.size(), 4U);
}

TEST_P(DeviceTest, UseIsMeasuredByArena) {
  device_->Base(Arena::Transient)[0] = std::byte{1};
  for (const ArenaUse& use : device_->MeasureUse()) {
    EXPECT_EQ(use.planned.value, use.arena == Arena::Transient ? 4096 : 0);
    EXPECT_EQ(use.touched.value, use.arena == Arena::Transient ? PageSize() : 0);
  }
}

}  // namespace
}  // namespace shardc
