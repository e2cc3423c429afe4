// Arenas: alignment, reach, pages touched (exact for known patterns), and what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "runtime/memory/arenas.h"
#include "runtime/memory/available_memory.h"

namespace shardc {
namespace {

constexpr int64_t MiB = 1 << 20;
/// Sizes that are no multiples of a page.
constexpr ArenaSizes Sizes{5 * MiB + 17, 3 * MiB, 2 * MiB + 1, 7 * MiB, 0, 1 * MiB};

auto Make(const ArenaSizes& sizes, int64_t num_ranks) -> SharedArenas {
  auto shared = SharedArenas::Create(sizes, {0, num_ranks});
  CHECK(shared.ok(), "{}", shared.error().message);
  return *std::move(shared);
}

auto Make(const SharedArenas& shared, int64_t rank) -> ArenaSet {
  auto set = ArenaSet::Create(shared, rank);
  CHECK(set.ok(), "{}", set.error().message);
  return *std::move(set);
}

/// Touched pages of one arena.
auto TouchedPages(const ArenaSet& set, Arena arena) -> int64_t {
  return set.MeasureUse()[static_cast<size_t>(arena)].touched.value / sysconf(_SC_PAGESIZE);
}

/// Small pages, whatever the host is set to.
auto WantSmallPages(const ArenaSet& set, Arena arena) -> void {
  const auto page = sysconf(_SC_PAGESIZE);
  madvise(set.Base(arena), static_cast<size_t>(RoundUp(set.planned(arena).value, page)), MADV_NOHUGEPAGE);
}

TEST(Arenas, AlignedZeroAndUntouched) {
  const SharedArenas shared = Make(Sizes, 2);
  const ArenaSet set = Make(shared, 1);
  for (const ArenaUse& use : set.MeasureUse()) {
    EXPECT_EQ(use.planned.value, Sizes[static_cast<size_t>(use.arena)]);
    EXPECT_EQ(use.touched.value, 0) << ToText(use.arena);
    EXPECT_EQ(set.Base(use.arena) == nullptr, use.planned.value == 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(set.Base(use.arena)) % ArenaAlignment, 0U);
  }
}

TEST(Arenas, TouchedPagesAreExact) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const SharedArenas shared = Make(Sizes, 2);
  const ArenaSet set = Make(shared, 0);
  for (size_t i = 0; i < NumArenas; ++i) {
    const auto arena = static_cast<Arena>(i);
    if (Sizes[i] == 0) {
      continue;
    }
    WantSmallPages(set, arena);
    // The first byte, the last byte, every third page between, and one page twice.
    std::set<int64_t> pages;
    const auto touch = [&](int64_t offset) {
      set.Base(arena)[offset] = std::byte{1};
      pages.insert(offset / page);
      EXPECT_EQ(TouchedPages(set, arena), static_cast<int64_t>(pages.size())) << ToText(arena) << " at " << offset;
    };
    touch(0);
    touch(Sizes[i] - 1);
    for (int64_t k = 3; k < 40; k += 3) {
      touch(k * page + 11);
    }
    touch(3 * page);
    // The others are as they were.
    for (size_t other = i + 1; other < NumArenas; ++other) {
      EXPECT_EQ(TouchedPages(set, static_cast<Arena>(other)), 0);
    }
  }
}

TEST(Arenas, WholeArenaTouchedIsPlannedRoundedToPages) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const SharedArenas shared = Make(Sizes, 1);
  const ArenaSet set = Make(shared, 0);
  for (const Arena arena : {Arena::Persistent, Arena::SharedPersistent}) {
    const int64_t planned = set.planned(arena).value;
    for (int64_t at = 0; at < planned; ++at) {
      set.Base(arena)[at] = std::byte{1};
    }
    EXPECT_EQ(TouchedPages(set, arena), CeilDiv(planned, page));
  }
}

TEST(Arenas, PrivateOnesAskForHugePages) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "this kernel has no huge pages";
  }
  const SharedArenas shared = Make(Sizes, 1);
  const ArenaSet set = Make(shared, 0);
  std::ifstream smaps("/proc/self/smaps");
  const std::string begin = fmt::format("{:x}-", reinterpret_cast<uintptr_t>(set.Base(Arena::Persistent)));
  std::string line;
  while (std::getline(smaps, line) && !line.starts_with(begin)) {
  }
  ASSERT_TRUE(smaps.good());
  while (std::getline(smaps, line) && !line.starts_with("VmFlags:")) {
  }
  EXPECT_THAT(line, testing::HasSubstr(" hg"));
}

TEST(Arenas, PeersReachSharedArenasAcrossProcesses) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const SharedArenas shared = Make(Sizes, 2);
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const ArenaSet set = Make(shared, 1);
    set.Base(Arena::SharedTransient)[123 + page] = std::byte{42};
    set.Base(Arena::Transient)[0] = std::byte{1};
    _exit(shared.Peers()[0][static_cast<size_t>(Arena::Transient)] == nullptr ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
  const ArenaSet set = Make(shared, 0);
  const PeerTable peers = shared.Peers();
  EXPECT_EQ(peers[1][static_cast<size_t>(Arena::SharedTransient)][123 + page], std::byte{42});
  EXPECT_EQ(peers[1][static_cast<size_t>(Arena::Transient)], nullptr);
  EXPECT_EQ(peers[0][static_cast<size_t>(Arena::SharedTransient)], set.Base(Arena::SharedTransient));
  EXPECT_EQ(TouchedPages(set, Arena::SharedTransient), 0);
  // A page that only the peer touched counts as the peer's, seen from here too.
  EXPECT_EQ(shared.mapping(1, Arena::SharedTransient).Touched().value, page);
}

// Those of the second of two hosts.
TEST(Arenas, OfRanksThatDoNotBeginAtZero) {
  const SharedArenas shared = *SharedArenas::Create(Sizes, {4, 7});
  const PeerTable peers = shared.Peers();
  ASSERT_EQ(peers.size(), 3U);
  std::set<std::byte*> bases;
  for (int64_t rank = 4; rank < 7; ++rank) {
    const ArenaSet set = Make(shared, rank);
    const auto& own = peers[static_cast<size_t>(rank - 4)];
    EXPECT_EQ(own[static_cast<size_t>(Arena::SharedTransient)], set.Base(Arena::SharedTransient));
    EXPECT_EQ(own[static_cast<size_t>(Arena::Gathered)], set.Base(Arena::Gathered));
    EXPECT_EQ(set.Base(Arena::Gathered), shared.mapping(4, Arena::Gathered).base());
    bases.insert(set.Base(Arena::SharedTransient));
  }
  EXPECT_NE(shared.mapping(4, Arena::Gathered).base(), nullptr);
  EXPECT_EQ(bases.size(), 3U);
  EXPECT_DEATH(shared.mapping(3, Arena::Gathered), "rank 3 of 4 to 7");
}

TEST(Arenas, RefusedMappingIsAnError) {
  const pid_t pid = fork();
  ASSERT_GE(pid, 0);
  if (pid == 0) {
    const rlimit limit{.rlim_cur = 1U << 30, .rlim_max = 1U << 30};
    setrlimit(RLIMIT_AS, &limit);
    const auto mapping = Mapping::Create(int64_t{1} << 40, Mapping::Kind::Private);
    const bool right = !mapping.ok() && mapping.error().code == ExitCode::DoesNotFit &&
                       mapping.error().message.find("1.00 TiB") != std::string::npos;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

/// A folder with files as /proc and /sys would have them.
class FakeRoot {
 public:
  FakeRoot() : path_(testing::TempDir() + fmt::format("shardc_memory_{}", getpid())) {
    std::filesystem::remove_all(path_);
  }
  ~FakeRoot() { std::filesystem::remove_all(path_); }
  auto Write(const std::string& name, const std::string& text) -> void {
    const std::filesystem::path path = path_ + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  auto path() const -> const std::string& { return path_; }

 private:
  std::string path_;
};

TEST(AvailableMemory, LeastOfHostAndGroups) {
  FakeRoot root;
  root.Write("/proc/meminfo", "MemTotal:       4000 kB\nMemAvailable:   3000 kB\n");
  EXPECT_EQ(MeasureAvailableMemory(root.path()).bytes.value, 3000 * 1024);
  EXPECT_EQ(MeasureAvailableMemory(root.path()).limit, "available on this host");
  root.Write("/proc/sys/kernel/random/boot_id", "a-b\n");
  EXPECT_EQ(MeasureAvailableMemory(root.path()).pool, "a-b");

  // Version 2: a limit half-way up, file pages that can be dropped, "max" below.
  root.Write("/proc/self/cgroup", "0::/job/step\n");
  root.Write("/sys/fs/cgroup/job/step/memory.max", "max\n");
  root.Write("/sys/fs/cgroup/job/step/memory.current", "5\n");
  root.Write("/sys/fs/cgroup/job/memory.max", "1000000\n");
  root.Write("/sys/fs/cgroup/job/memory.current", "400000\n");
  root.Write("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 100000\n");
  EXPECT_EQ(MeasureAvailableMemory(root.path()).bytes.value, 700'000);
  EXPECT_EQ(MeasureAvailableMemory(root.path()).limit, "left in control group /job");
  EXPECT_THAT(MeasureAvailableMemory(root.path()).pool, testing::MatchesRegex("a-b [0-9]+:[0-9]+"));

  // Version 1 beside it, seen from inside a container: only the root's files.
  root.Write("/proc/self/cgroup", "4:cpu,memory:/docker/abc\n0::/job/step\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "500000\n");
  root.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "600000\n");
  root.Write("/sys/fs/cgroup/memory/memory.stat", "total_inactive_file 200000\n");
  EXPECT_EQ(MeasureAvailableMemory(root.path()).bytes.value, 100'000);
  EXPECT_EQ(MeasureAvailableMemory(root.path()).limit, "left in control group /");
}

TEST(AvailableMemory, OfThisHostIsAPositiveNumber) {
  const AvailableMemory available = MeasureAvailableMemory();
  EXPECT_GT(available.bytes.value, 0);
  EXPECT_LT(available.bytes.value, std::numeric_limits<int64_t>::max());
}

TEST(AvailableMemory, SmallestLimitOfGroups) {
  FakeRoot root;
  EXPECT_EQ(GroupLimitText(root.path()), "");
  root.Write("/proc/self/cgroup", "4:cpu,memory:/docker/abc\n0::/job/step\n");
  root.Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "600000\n");
  EXPECT_EQ(GroupLimitText(root.path()), "");
  root.Write("/sys/fs/cgroup/job/step/memory.max", "3221225472\n");
  root.Write("/sys/fs/cgroup/job/step/memory.current", "5\n");
  root.Write("/sys/fs/cgroup/job/memory.max", "2147483648\n");
  root.Write("/sys/fs/cgroup/job/memory.current", "5\n");
  EXPECT_EQ(GroupLimitText(root.path()), "control group /job has a limit of 2.00 GiB");
}

TEST(AvailableMemory, CheckFitsNamesAllNumbers) {
  const AvailableMemory available{.bytes = Bytes{200 * MiB}, .limit = "available on this host"};
  const ArenaSizes sizes{40 * MiB, 5 * MiB, 5 * MiB, 0, 0};
  const OutsideUse outside{.planned = Bytes{150 * MiB}, .taken = Bytes{130 * MiB}};
  EXPECT_TRUE(CheckFits(sizes, {.ranks_per_host = 3}, outside, available, "buy more").ok());
  const Status status = CheckFits(sizes, {.ranks_per_host = 4}, outside, available, "buy more");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ExitCode::DoesNotFit);
  EXPECT_EQ(status.error().message,
            "does not fit: 0.21 GiB more are needed, and 200 MiB is available on this host (4 ranks x 50.0 MiB in "
            "arenas, and "
            "150 MiB outside of them, of which the launcher has 130 MiB already); buy more");
  // Two hosts on one machine take twice as much, and each of them counts both.
  EXPECT_TRUE(CheckFits(sizes, {.num_hosts = 2, .ranks_per_host = 1}, outside, available, "").ok());
  EXPECT_THAT(CheckFits(sizes, {.num_hosts = 2, .ranks_per_host = 2}, outside, available, "").error().message,
              testing::HasSubstr("0.23 GiB more are needed, and 200 MiB is available on this host (2 hosts on this "
                                 "machine, each 2 ranks x 50.0 MiB in arenas"));
  // Gathered parameters are there once a host.
  const ArenaSizes gathered{40 * MiB, 0, 0, 0, 0, 60 * MiB};
  EXPECT_TRUE(CheckFits(gathered, {.ranks_per_host = 3}, outside, available, "").ok());
  EXPECT_FALSE(CheckFits(gathered, {.num_hosts = 2, .ranks_per_host = 1}, outside, available, "").ok());
  // A launcher that has more than all of it.
  EXPECT_TRUE(
      CheckFits(sizes, {.ranks_per_host = 4}, {.planned = Bytes{150 * MiB}, .taken = Bytes{900 * MiB}}, available, "")
          .ok());
  // No memory for what lies outside alone.
  EXPECT_FALSE(CheckFits({}, {}, {.planned = Bytes{201 * MiB}, .taken = {}}, available, "").ok());
  EXPECT_TRUE(CheckFits({}, {}, {.planned = Bytes{200 * MiB}, .taken = {}}, available, "").ok());
  // Products beyond 64 bits.
  const ArenaSizes huge{std::numeric_limits<int64_t>::max() / 2, 0, 0, 0, 0};
  EXPECT_FALSE(CheckFits(huge, {.ranks_per_host = 1024}, outside, available, "").ok());
}

TEST(AvailableMemory, OfThisProcess) {
  const Bytes own = MeasureAnonymous();
  EXPECT_GT(own.value, 0);
  EXPECT_LE(own, MeasurePeakResident());
  const ProportionalMemory proportional = MeasureProportional(getpid());
  EXPECT_GT(proportional.files.value, 0);
  EXPECT_GT(proportional.all, proportional.files);
  // Pages may come between the two looks.
  EXPECT_LE(proportional.all.value - proportional.files.value, own.value + MiB);
  EXPECT_EQ(MeasureProportional(0).all.value, 0);
}

}  // namespace
}  // namespace shardc
