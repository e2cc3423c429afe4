// A rank computes with no more threads than the job has cores, whatever the machine has.
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <sstream>

#include "compiler/base/processor.h"
#include "compiler/ops/cpu/usable_threads.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

/// The calling process, and what it starts, on its first core alone.
auto KeepOneCore() -> void {
  cpu_set_t cores;
  CHECK(sched_getaffinity(0, sizeof(cores), &cores) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &cores)) {
    ++first;
  }
  CPU_ZERO(&cores);
  CPU_SET(first, &cores);
  CHECK(sched_setaffinity(0, sizeof(cores), &cores) == 0);
}

auto NumThreadsOf(pid_t pid) -> int64_t {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("Threads:")) {
      return std::stoll(line.substr(8));
    }
  }
  return 0;
}

/// The most threads that the rank of a run of one rank had.
auto MostThreads(const std::function<void()>& before_exec, const Sets& sets = {"run.threads=0"}) -> int64_t {
  const Training training({"mesh.dp=1", "train.steps=10", "train.eval_every=0"});
  Sets all = SlowSteps();
  all.insert(all.end(), sets.begin(), sets.end());
  Process process(training.RunCommand("run", all), {.folder = {}, .environment = {}, .before_exec = before_exec});
  const auto ranks = process.AwaitChildren(1);
  CHECK(ranks.size() == 1);
  int64_t most = 0;
  AwaitTrue(
      [&] {
        most = std::max(most, NumThreadsOf(ranks[0]));
        return !process.is_running();
      },
      Seconds{60});
  EXPECT_EQ(process.Wait().status, 0);
  return most;
}

TEST(Threads, FollowTheMaskOfTheJob) {
  const int64_t cores = NumCores();
  if (cores < 2) {
    GTEST_SKIP() << "there is one core";
  }
  const int64_t with_one_core = MostThreads(KeepOneCore);
  // One that keeps the lease of the checkpoints, on each.
  EXPECT_EQ(MostThreads({}), with_one_core + cores - 1);
}

// Some threads more would each take memory, and find no work. So many threads take a second for each step of 12
// sequences.
TEST(Threads, NoMoreThanThePlanHasWorkFor) {
  constexpr int64_t Asked = 500;
  const Training training({"mesh.dp=1", "train.eval_every=0"});
  for (const char* device : {"cpu", "cpu-portable"}) {
    const Sets sets{fmt::format("run.threads={}", Asked), fmt::format("run.device=\"{}\"", device), "train.steps=2",
                    "batch.global=4"};
    Sets all = SlowSteps();
    all.insert(all.end(), sets.begin(), sets.end());
    const UsableThreads usable = UsableThreadsOf(training.Compile(all), Asked);
    EXPECT_LT(usable.all, Asked / 2);
    EXPECT_LT(usable.products, usable.all);
    const int64_t most = MostThreads({}, sets);
    // The one that keeps the lease.
    EXPECT_LE(most, usable.all + 1) << device;
    EXPECT_GE(most, usable.products + 1) << device;
  }
}

}  // namespace
}  // namespace shardc
