// Takers of one lease who come together, are killed while they take it, or whose calls fail: one of them gets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/lease_process.h"
#include "tests/support/fault_fs.h"
#include "tests/support/nightly.h"
#include "tests/support/sanitized.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Who died where: after the claim, and after the rename.
TEST(Lease, ATakerThatWasKilledIsInNobodysWay) {
  const TemporaryFolder folder;
  LeaseRecord dead = NewLeaseRecord("dead");
  dead.process.start -= 1;
  LeaseRecord taker = NewLeaseRecord("taker");
  taker.process.start -= 1;
  LeaseOptions options = Quick();
  options.stale_after = Seconds{3600};
  WriteText(folder / "lease.json", ToText(dead));
  WriteText(folder / ("lease.json.claim-" + dead.token), ToText(taker));
  {
    const auto lease = Lease::Acquire(folder.path(), "run", options);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"lease.json"});
  }
  WriteText(folder / ("lease.json.claim-" + dead.token), ToText(taker));
  WriteText(folder / ("lease.json.stale-" + taker.token), ToText(dead));
  EXPECT_TRUE(Lease::Acquire(folder.path(), "run", options).ok());
}

/// Contenders meet at a gate; each that gets the lease holds it until all have their answer.
auto CountWinners(const std::string& folder, int num_contenders, const LeaseOptions& options) -> int {
  int gate[2];
  int over[2];
  CHECK(pipe(gate) == 0 && pipe(over) == 0, "pipe");
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < num_contenders; ++i) {
    children.push_back(std::make_unique<Child>([&] {
      close(gate[1]);
      close(over[1]);
      char byte = 0;
      [[maybe_unused]] const ssize_t opened = read(gate[0], &byte, 1);
      const auto lease = Lease::Acquire(folder, "contender", options);
      const bool won = lease.ok() && (*lease)->Check().ok();
      WriteText(fmt::format("{}/answer-{}", folder, getpid()), won ? "won" : "lost");
      [[maybe_unused]] const ssize_t ended = read(over[0], &byte, 1);
      if (won && !(*lease)->Check().ok()) {
        return 3;
      }
      // A loser was told of a winner, not of a fault.
      return won ? 1 : lease.error().message.find("is in use by run contender") != std::string::npos ? 0 : 2;
    }));
  }
  close(gate[0]);
  close(over[0]);
  close(gate[1]);
  const auto all_answered = [&] {
    return std::all_of(children.begin(), children.end(), [&](const auto& child) {
      return !ReadText(fmt::format("{}/answer-{}", folder, child->pid())).empty();
    });
  };
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!all_answered() && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(300));
  }
  if (!all_answered()) {
    ADD_FAILURE() << "a contender neither won nor lost in a minute";
    for (const auto& child : children) {
      child->Kill(SIGKILL);
    }
  }
  close(over[1]);
  int winners = 0;
  for (const auto& child : children) {
    std::filesystem::remove(fmt::format("{}/answer-{}", folder, child->pid()));
    const int status = child->Wait();
    EXPECT_TRUE(status == 0 || status == 1) << status;
    winners += status == 1 ? 1 : 0;
  }
  return winners;
}

auto ExpectOneWinnerInEachOf(int rounds) -> void {
  const TemporaryFolder folder;
  LeaseOptions options = Quick();
  options.beat = Seconds{5};
  LeaseRecord dead = NewLeaseRecord("dead");
  dead.process.start -= 1;
  for (int round = 0; round < rounds; ++round) {
    dead.beat = round;
    WriteText(folder / "lease.json", ToText(dead));
    ASSERT_EQ(CountWinners(folder.path(), 4 + round % 4, options), 1) << "round " << round;
    EXPECT_THAT(NamesIn(folder.path()), IsEmpty()) << "round " << round;
  }
}

TEST(Lease, OfSomeTakersOneWins) { ExpectOneWinnerInEachOf(20); }

TEST(Lease, OfManyTakersOneWins) { ExpectOneWinnerInEachOf(IsSanitized ? 100 : 1000 / Stride(10)); }

/// Puts another lease in the place of the one that a taker renames, just before it does.
class SwappingFs final : public ForwardingFs {
 public:
  SwappingFs(std::string path, std::string text) : path_(std::move(path)), text_(std::move(text)) {}

  auto Rename(int directory, const char* from, const char* to) -> int override {
    if (std::string_view(from) == "lease.json" && !std::exchange(has_swapped_, true)) {
      WriteText(path_, text_);
    }
    return ForwardingFs::Rename(directory, from, to);
  }
  auto has_swapped() const -> bool { return has_swapped_; }

 private:
  std::string path_;
  std::string text_;
  bool has_swapped_ = false;
};

TEST(Lease, TakerPutsBackLeaseOfAnother) {
  const TemporaryFolder folder;
  LeaseRecord dead = NewLeaseRecord("dead");
  dead.process.start -= 1;
  WriteText(folder / "lease.json", ToText(dead));
  // That of this process, which lives.
  const std::string living = ToText(NewLeaseRecord("living"));
  SwappingFs fs(folder / "lease.json", living);
  LeaseOptions options = Quick();
  options.fs = &fs;
  const auto lease = Lease::Acquire(folder.path(), "taker", options);
  EXPECT_TRUE(fs.has_swapped());
  ASSERT_FALSE(lease.ok());
  EXPECT_THAT(lease.error().message, HasSubstr("is in use by run living"));
  EXPECT_EQ(ReadText(folder / "lease.json"), living);
}

TEST(Lease, IsNotReleasedUnderTaker) {
  const TemporaryFolder folder;
  std::string text;
  {
    LeaseOptions options = Quick();
    options.beat = Seconds{3600};
    const auto lease = Lease::Acquire(folder.path(), "owner", options);
    ASSERT_TRUE(lease.ok()) << lease.error().message;
    text = ReadText(folder / "lease.json");
    WriteText(folder / ("lease.json.claim-" + (*lease)->token()), ToText(NewLeaseRecord("taker")));
  }
  // The taker, which has looked at it, moves it away itself.
  EXPECT_EQ(ReadText(folder / "lease.json"), text);
}

/// Each file-system call of a start and of a takeover fails in turn: an error or a lease, and nobody is kept out after.
TEST(Lease, AFailedCallKeepsNobodyOut) {
  LeaseOptions options = Quick();
  options.beat = Seconds{3600};
  for (const bool is_takeover : {false, true}) {
    for (int64_t n = 1;; ++n) {
      SCOPED_TRACE(fmt::format("call {} of a {}", n, is_takeover ? "takeover" : "start"));
      const TemporaryFolder folder;
      if (is_takeover) {
        LeaseRecord dead = NewLeaseRecord("dead");
        dead.process.start -= 1;
        WriteText(folder / "lease.json", ToText(dead));
      }
      FaultFs faults({.fail_at = n});
      options.fs = &faults;
      const auto lease = Lease::Acquire(folder.path(), "run", options);
      const bool was_hit = faults.hit();
      if (lease.ok()) {
        EXPECT_EQ(LeaseRecordFromText(ReadText(folder / "lease.json"))->token, (*lease)->token());
      } else {
        EXPECT_EQ(lease.error().code, ExitCode::Environment);
        EXPECT_THAT(lease.error().message, HasSubstr("Input/output error"));
        options.fs = &PosixFs();
        const auto next = Lease::Acquire(folder.path(), "next", options);
        ASSERT_TRUE(next.ok()) << next.error().message;
        EXPECT_TRUE((*next)->Check().ok());
      }
      if (!was_hit) {
        EXPECT_TRUE(lease.ok()) << lease.error().message;
        EXPECT_GE(n, is_takeover ? 15 : 5);
        break;
      }
    }
  }
}

}  // namespace
}  // namespace shardc
