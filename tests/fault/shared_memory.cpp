// Shared memory lives with its processes: nothing of it has a name in /dev/shm or elsewhere, so that a small or full
// /dev/shm is in nobody's way, and nothing is left whatever dies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Folders are not shared memory: tests put their files there.
auto SharedMemoryNames() -> std::vector<std::string> {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (!entry.is_directory()) {
      names.push_back(entry.path());
    }
  }
  std::sort(names.begin(), names.end());
  // System V segments: a head line and a line each.
  names.push_back(ReadText("/proc/sysvipc/shm"));
  return names;
}

/// Gives the calling process a /dev/shm of one page.
auto MakeSharedMemoryTiny() -> bool {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", "/dev/shm", "tmpfs", 0, "size=4k") == 0;
}

TEST(SharedMemory, NeedsNoRoomInDevShm) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "mounting a small /dev/shm needs root";
  }
  if (RunProcess({"/bin/true"}, {.before_exec =
                                     [] {
                                       if (!MakeSharedMemoryTiny()) {
                                         _exit(9);
                                       }
                                     }})
          .status != 0) {
    GTEST_SKIP() << "this machine allows no mount namespaces";
  }
  // Where the small one does not hide it.
  const std::string folder = testing::TempDir() + fmt::format("shardc_small_{}", getpid());
  const Training training;
  std::filesystem::create_directories(folder);
  for (const char* name : {"tiny.toml", "tokens.bin"}) {
    std::filesystem::copy_file(training / name, folder + "/" + name);
  }
  const Outcome outcome = RunProcess({SHARDC_BINARY_DIR "/shardc", "run", folder + "/tiny.toml", "--run-dir",
                                      folder + "/run", "--set", "train.steps=5", "--set", "mesh.dp=3"},
                                     {.before_exec = [] {
                                       if (!MakeSharedMemoryTiny()) {
                                         _exit(9);
                                       }
                                     }});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(ReadMetrics(folder + "/run").steps.size(), 5U);
  std::filesystem::remove_all(folder);
}

TEST(SharedMemory, KilledJobLeavesNothing) {
  const Training training({"train.steps=100000", "train.eval_every=0", "checkpoint.every=1"});
  const auto before = SharedMemoryNames();
  Process process(training.RunCommand());
  ASSERT_TRUE(process.Await([&] { return ReadMetrics(training / "run").last_step() >= 3; })) << process.err();
  EXPECT_EQ(SharedMemoryNames(), before) << "while it runs";
  process.KillGroup(SIGKILL);
  ASSERT_EQ(process.Wait().status, 128 + SIGKILL);
  EXPECT_EQ(SharedMemoryNames(), before);

  // Files of the run itself: the next start clears up what the dead job had begun, and leaves alone what is not its.
  const std::string others = training / "run/checkpoints/step-00000001.tmp-another";
  std::filesystem::create_directories(others);
  std::filesystem::create_directories(training / "run/checkpoints/step-99999999.tmp-tiny");
  WriteText(training / "run/metrics.jsonl.tmp", "begun");
  const Outcome again = training.Run("run", {"train.steps=1"});
  ASSERT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(UnfinishedSavesOf(training / "run"), testing::ElementsAre("step-00000001.tmp-another"));
  EXPECT_FALSE(std::filesystem::exists(training / "run/metrics.jsonl.tmp"));
}

TEST(SharedMemory, TooBigForTheMachineIsRefusedWithNumbersAndARemedy) {
  // 2^20 sequences of activations.
  const Training training({"batch.global=2097152"});
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("does not fit: "));
  EXPECT_THAT(outcome.err, HasSubstr("(2 ranks x "));
  EXPECT_THAT(outcome.err, HasSubstr("a smaller batch.micro"));
}

}  // namespace
}  // namespace shardc
