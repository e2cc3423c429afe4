#include "tests/emulated_hosts/hosts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "compiler/base/stopwatch.h"
#include "runtime/core/rank_main.h"
#include "runtime/device/family.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/emulated/cuda.h"

namespace shardc {

HostsTraining::HostsTraining()
    : Training(
          {"model.seq=16", "batch.global=4", "train.steps=5", "train.eval_every=2", "data.eval_tokens=100",
           "checkpoint.every=0",
           R"--(init.rule=[{match = "*", value = "if num_dims == 1 then normal(1, 0.1) else normal(0, 0.15)"}])--"}) {}

auto HostsTraining::CompileFor(Sets sets, const std::string& comm) const -> Plan {
  sets.insert(sets.end(), {"run.device=cuda-sm90", "run.comm=" + comm});
  return Compile(sets);
}

/// Registers the emulated family, whose ranks call `prepare` first.
static auto UsePreparedRanks(PrepareRank prepare) -> void {
  UseEmulatedCuda();
  static PrepareRank prepare_rank = nullptr;
  static FamilyParts parts = PartsOf(DeviceFamily::Cuda);
  static const auto make_device = parts.make_device;
  prepare_rank = prepare;
  parts.make_device = [](const Plan& plan, const DevicePlace& place) {
    if (prepare_rank != nullptr) {
      prepare_rank(TheNcclDouble(), place.rank);
    }
    return make_device(plan, place);
  };
  SetParts(DeviceFamily::Cuda, &parts);
}

auto TrainOnHosts(const Plan& plan, const std::string& run_dir, PrepareRank prepare, Seconds timeout) -> HostsRun {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  const std::string text = run_dir + ".txt";
  const Stopwatch watch;
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    const int file = open(text.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    UsePreparedRanks(prepare);
    const LaunchOptions options{.run_dir = run_dir, .timeout = timeout};
    const auto launch = plan.run.comm == Comm::Shm ? LaunchLocal : LaunchPlayedHosts;
    const auto code = launch(plan, options, RunRank);
    if (!code) {
      std::printf("error: %s\n", code.error().message.c_str());
    }
    std::fflush(nullptr);
    _exit(static_cast<int>(code ? *code : code.error().code));
  }
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return {.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
          .text = ReadText(text),
          .waited = watch.Elapsed()};
}

}  // namespace shardc
