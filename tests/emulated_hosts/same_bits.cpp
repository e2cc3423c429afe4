// A run on hosts of GPUs has the bits of one in shared memory, however its ranks communicate and however late they are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/emulated_hosts/hosts.h"

namespace shardc {
namespace {

/// Returns the newest checkpoint without its manifest, which names the plan.
auto StateIn(const std::string& run_dir) -> std::map<std::string, std::string> {
  std::map<std::string, std::string> files = NewestCheckpointOf(run_dir);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  return files;
}

TEST(EmulatedHosts, HaveBitsOfOne) {
  const HostsTraining training;
  const std::vector<Sets> meshes{
      {"mesh.hosts=2", "mesh.dp=2", "batch.micro=1"},
      {"mesh.hosts=2", "mesh.dp=4", "precision.compute=bf16", "precision.reduce=bf16"},
      {"mesh.hosts=2", "mesh.replicate=2", "mesh.dp=1", "mesh.tp=2"},
  };
  for (size_t i = 0; i < meshes.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(meshes[i]));
    const auto run_dir = [&](const std::string& comm) { return training / fmt::format("{}-{}", comm, i); };
    for (const std::string comm : {"shm", "nccl", "nccl-flat"}) {
      const HostsRun run = TrainOnHosts(training.CompileFor(meshes[i], comm), run_dir(comm));
      ASSERT_EQ(run.status, 0) << run.text;
      EXPECT_THAT(run.text, testing::ContainsRegex("rank 0 sent .*, as planned"));
      ASSERT_NO_FATAL_FAILURE(ExpectSameSteps(ReadMetrics(run_dir("shm")), ReadMetrics(run_dir(comm))));
      EXPECT_EQ(ReadMetrics(run_dir(comm)).evals, ReadMetrics(run_dir("shm")).evals);
      EXPECT_FALSE(StateIn(run_dir(comm)).empty());
      EXPECT_TRUE(StateIn(run_dir(comm)) == StateIn(run_dir("shm"))) << comm;
      std::printf("%s over %s: %.1f s\n", testing::PrintToString(meshes[i]).c_str(), comm.c_str(), run.waited.value);
    }
  }
}

TEST(EmulatedHosts, LeaveSumsToTheLibrary) {
  const HostsTraining training;
  // Three hosts: a ring adds their terms in an order that differs by slot.
  const std::vector<Sets> meshes{{"mesh.hosts=3", "mesh.dp=6", "batch.global=12"},
                                 {"mesh.hosts=3", "mesh.dp=3", "batch.global=12", "precision.reduce=bf16"},
                                 {"mesh.hosts=3", "mesh.replicate=3", "mesh.dp=1", "mesh.tp=2", "batch.global=12"}};
  for (size_t i = 0; i < meshes.size(); ++i) {
    SCOPED_TRACE(testing::PrintToString(meshes[i]));
    const auto run_dir = [&](const std::string& name) { return training / fmt::format("{}-{}", name, i); };
    const Plan plan = training.CompileFor(meshes[i], "nccl-ring");
    for (const char* name : {"ring", "again"}) {
      const HostsRun run = TrainOnHosts(plan, run_dir(name));
      ASSERT_EQ(run.status, 0) << run.text;
      EXPECT_THAT(run.text, testing::ContainsRegex("rank 0 sent .*, as planned"));
    }
    ExpectSameRun(run_dir("ring"), run_dir("again"));
    // A restart with another version says so, as its sums may have other bits.
    EXPECT_THAT(ReadText(run_dir("ring") + "/attempts/0001/attempt.json"), testing::HasSubstr(R"("nccl": "2.28.9")"));
    ASSERT_EQ(TrainOnHosts(training.CompileFor(meshes[i], "shm"), run_dir("shm")).status, 0);
    const auto expected = ReadMetrics(run_dir("shm")).steps;
    const auto found = ReadMetrics(run_dir("ring")).steps;
    ASSERT_EQ(found.size(), expected.size());
    for (size_t step = 0; step < found.size(); ++step) {
      EXPECT_NEAR(found[step].loss, expected[step].loss, 1e-6 * expected[step].loss);
    }
  }
}

TEST(EmulatedHosts, SkewChangesNoBits) {
  const HostsTraining training;
  const Plan plan = training.CompileFor({"mesh.hosts=2", "mesh.dp=4"}, "nccl");
  ASSERT_EQ(TrainOnHosts(plan, training / "even").status, 0);
  const HostsRun run = TrainOnHosts(plan, training / "skewed", [](NcclDouble& nccl, int64_t rank) {
    nccl.switches.longest_delay_ms = rank == 2 ? 10 : 1;
  });
  ASSERT_EQ(run.status, 0) << run.text;
  ExpectSameRun(training / "even", training / "skewed");
}

// GPUs of one host that cannot reach each other.
TEST(EmulatedHosts, OneHostMayExchangeToo) {
  const HostsTraining training;
  for (const std::string comm : {"shm", "nccl-flat"}) {
    const HostsRun run = TrainOnHosts(training.CompileFor({"mesh.dp=2"}, comm), training / comm);
    ASSERT_EQ(run.status, 0) << run.text;
  }
  EXPECT_TRUE(StateIn(training / "nccl-flat") == StateIn(training / "shm"));
}

}  // namespace
}  // namespace shardc
