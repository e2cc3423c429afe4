// Jobs in a memory control group: what does not fit is refused at the start and not killed later, what fits runs, and
// what is killed all the same names the group. Needs root and a hierarchy of either version that takes new groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>

#include "compiler/ops/cpu/outside_arenas.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr int64_t MiB = int64_t{1} << 20;

auto Put(const std::string& path, const std::string& text) -> bool {
  std::ofstream file(path);
  file << text << std::flush;
  return file.good();
}

/// A group below that of this process.
class ControlGroup {
 public:
  /// None where this machine does not let one be made.
  static auto Create(int64_t limit) -> std::optional<ControlGroup> {
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line)) {
      const size_t first = line.find(':');
      const size_t second = line.find(':', first + 1);
      const std::string controllers = line.substr(first + 1, second - first - 1);
      const bool is_second_version = controllers.empty();
      if (controllers != "memory" && !is_second_version) {
        continue;
      }
      ControlGroup group;
      group.path_ = line.substr(second + 1) + (line.ends_with('/') ? "" : "/") + fmt::format("shardc-{}", getpid());
      group.folder_ = (is_second_version ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory") + group.path_;
      std::error_code error;
      if (!std::filesystem::create_directory(group.folder_, error)) {
        continue;
      }
      if (Put(group.folder_ + (is_second_version ? "/memory.max" : "/memory.limit_in_bytes"), std::to_string(limit))) {
        return group;
      }
    }
    return std::nullopt;
  }
  ControlGroup(ControlGroup&& other) noexcept
      : path_(std::move(other.path_)), folder_(std::exchange(other.folder_, {})) {}
  auto operator=(ControlGroup&&) -> ControlGroup& = delete;
  ~ControlGroup() {
    std::error_code error;
    if (!folder_.empty()) {
      AwaitTrue([&] { return std::filesystem::remove(folder_, error) || !std::filesystem::exists(folder_); },
                Seconds{5});
    }
  }

  auto path() const -> const std::string& { return path_; }
  auto Options() const -> ProcessOptions {
    return {.folder = {}, .environment = {}, .before_exec = [procs = folder_ + "/cgroup.procs"] {
              if (!Put(procs, std::to_string(getpid()))) {
                _exit(125);
              }
            }};
  }

 private:
  ControlGroup() = default;
  std::string path_;
  std::string folder_;
};

/// About 200 MiB in arenas.
const Sets Large{"model.hidden=256", "model.heads=4", "model.ffn=768",
                 "model.seq=256",    "train.steps=2", "train.eval_every=0"};

auto ArenaBytes(const Plan& plan) -> int64_t { return ReservedBytes(plan).value * plan.mesh.num_ranks(); }

TEST(ControlGroup, WhatFitsByArenasAloneIsRefused) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory grows with what is touched";
#endif
  const Training training(Large);
  const Plan plan = training.Compile();
  const int64_t arenas = ArenaBytes(plan);
  ASSERT_GE(arenas, 100 * MiB);
  // The arenas fit beside what the launcher has by then, 130 MiB at most; what the ranks take beside them does not.
  const int64_t outside = OutsideArenasOf(plan).all().value;
  for (const auto& [limit, status] : {std::pair{arenas + outside / 3, 4}, std::pair{arenas + outside * 11 / 10, 0}}) {
    auto group = ControlGroup::Create(limit);
    if (!group) {
      GTEST_SKIP() << "no memory control group can be made";
    }
    const Outcome outcome = RunProcess(training.RunCommand(fmt::format("run-{}", status)), group->Options());
    EXPECT_EQ(outcome.status, status) << limit << "\n" << outcome.err;
    if (status != 0) {
      EXPECT_THAT(outcome.err, HasSubstr(fmt::format("(2 ranks x {} in arenas, and {} outside of them",
                                                     FormatMemory(Bytes{arenas / 2}), FormatMemory(Bytes{outside}))));
      EXPECT_THAT(outcome.err, HasSubstr(fmt::format("is left in control group {} (", group->path())));
    }
  }
}

// Two hosts on one machine: the limit is for both.
TEST(ControlGroup, AllHostsOfTheMachineCount) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory grows with what is touched";
#endif
  Sets sets = Large;
  sets.insert(sets.end(), {"mesh.dp=4", "mesh.hosts=2", "batch.micro=1"});
  const Training training(sets);
  const Plan plan = training.Compile();
  const int64_t outside = OutsideArenasOf(plan).all().value;
  for (const auto& [limit, status] : {std::pair{ArenaBytes(plan), 4}, std::pair{ArenaBytes(plan) + 4 * outside, 0}}) {
    auto group = ControlGroup::Create(limit);
    if (!group) {
      GTEST_SKIP() << "no memory control group can be made";
    }
    const Outcome outcome = RunProcess(training.RunCommand(fmt::format("run-{}", status)), group->Options());
    EXPECT_EQ(outcome.status, status) << limit << "\n" << outcome.err;
    EXPECT_THAT(outcome.err,
                HasSubstr(status == 4 ? "(2 hosts on this machine, each 2 ranks x " : "memory of host 0, 2 "));
  }
}

// Most of what these ranks have beside their arenas is the plan: its lists, and the bound calls of each.
TEST(ControlGroup, WhatStartsIsNotKilled) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own memory grows with what is touched";
#endif
  const Training training(
      {"mesh.dp=4", "batch.micro=1", "model.layers=300", "train.steps=2", "train.eval_every=0", "checkpoint.every=0"});
  const Plan plan = training.Compile();
  const int64_t outside = OutsideArenasOf(plan).all().value;
  const int64_t needed = ArenaBytes(plan) + outside;
  int number = 0;
  for (const int64_t limit :
       {needed - outside * 2 / 3, needed - outside / 4, needed + 4 * MiB, needed + 40 * MiB, needed + 100 * MiB}) {
    auto group = ControlGroup::Create(limit);
    if (!group) {
      GTEST_SKIP() << "no memory control group can be made";
    }
    // Not in memory, where the group would have it too.
    const std::string run_dir = fmt::format("{}/control-group-{}-{}", SHARDC_BINARY_DIR, getpid(), number++);
    const Outcome outcome = RunProcess(training.Command("run", {"--run-dir", run_dir}), group->Options());
    std::filesystem::remove_all(run_dir);
    // What the group has of its own (page tables, files that are open) may be a little too much at the edge.
    EXPECT_THAT(outcome.status, testing::AnyOf(0, 4)) << limit - needed << "\n" << outcome.err;
    if (limit < needed - outside / 2) {
      EXPECT_EQ(outcome.status, 4) << outcome.err;
    } else if (limit >= needed + 40 * MiB) {
      EXPECT_EQ(outcome.status, 0) << outcome.err;
    }
  }
}

TEST(ControlGroup, IsNamedWhereARankIsKilled) {
  auto group = ControlGroup::Create(int64_t{4} << 30);
  if (!group) {
    GTEST_SKIP() << "no memory control group can be made";
  }
  const Training training(SlowSteps());
  Process process(training.RunCommand(), group->Options());
  const auto ranks = process.AwaitChildren(2);
  ASSERT_EQ(ranks.size(), 2U);
  ASSERT_TRUE(process.Await([&] { return process.err().find("elements drawn") != std::string::npos; }));
  kill(ranks[1], SIGKILL);
  const Outcome outcome = process.Wait();
  EXPECT_EQ(outcome.status, 6);
  EXPECT_THAT(outcome.err,
              HasSubstr(fmt::format("; the kernel sends SIGKILL when memory runs out: control group {} has a limit of "
                                    "4.00 GiB\n",
                                    group->path())));
}

}  // namespace
}  // namespace shardc
