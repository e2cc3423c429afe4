// A plan's mesh and hosts decide the bits of a run. How its ranks are started, and how they communicate, does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/hosts/job.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// Steps, and parameters and optimizer state of the newest checkpoint. Manifests name the plan, which says how ranks
/// communicate.
auto ExpectSameResults(const std::string& run, const std::string& other) -> void {
  ASSERT_NO_FATAL_FAILURE(ExpectSameSteps(ReadMetrics(run), ReadMetrics(other)));
  const auto files = NewestCheckpointOf(run);
  const auto other_files = NewestCheckpointOf(other);
  size_t num_compared = 0;
  for (const auto& [name, content] : files) {
    if (name.ends_with(".safetensors")) {
      ++num_compared;
      EXPECT_TRUE(other_files.contains(name) && other_files.at(name) == content) << name;
    }
  }
  EXPECT_GT(num_compared, 0U);
}

auto Succeeds(const std::vector<Outcome>& outcomes) -> bool {
  return std::ranges::all_of(outcomes, [](const Outcome& outcome) { return outcome.status == 0 && outcome.all_gone; });
}

class SameBitsOverHosts : public testing::TestWithParam<Sets> {};

TEST_P(SameBitsOverHosts, HoweverRanksCommunicate) {
  Sets sets{"train.steps=12", "train.eval_every=6", "checkpoint.every=0"};
  sets.insert(sets.end(), GetParam().begin(), GetParam().end());
  const Training training(sets);
  const std::vector<std::string> comms = testing::PrintToString(GetParam()).find("gather_into") == std::string::npos
                                             ? std::vector<std::string>{"shm", "gloo", "gloo-flat"}
                                             : std::vector<std::string>{"shm", "gloo"};
  for (const std::string& comm : comms) {
    const Outcome outcome = training.Run(comm, {fmt::format("run.comm='{}'", comm)});
    ASSERT_EQ(outcome.status, 0) << comm << ": " << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
    EXPECT_THAT(outcome.err, testing::ContainsRegex("rank 0 sent .*, as planned"));
    ExpectSameResults(training / "shm", training / comm);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Recipes, SameBitsOverHosts,
    testing::Values(Sets{"mesh.dp=1"}, Sets{"mesh.dp=2", "mesh.tp=2"}, Sets{"mesh.hosts=2", "mesh.dp=4"},
                    Sets{"mesh.hosts=2", "mesh.dp=4", "precision.reduce='bf16'"},
                    Sets{"mesh.hosts=2", "mesh.dp=4", "precision.compute='bf16'", "batch.micro=1"},
                    Sets{"mesh.hosts=2", "mesh.replicate=2", "mesh.dp=2"}, Sets{"mesh.hosts=2", "mesh.dp=2"},
                    Sets{"mesh.hosts=2", "mesh.dp=2", "precision.reduce='bf16'"},
                    Sets{"mesh.hosts=2", "mesh.dp=2", "mesh.tp=2"}, Sets{"mesh.hosts=2", "mesh.tp=2"},
                    Sets{"mesh.hosts=3", "mesh.dp=6"}, Sets{"mesh.hosts=2", "mesh.dp=4", "shard.reshard_size=2"},
                    Sets{"mesh.hosts=2", "mesh.dp=4", "shard.gather_into='host'"}));

TEST(Hosts, ALaunchBySomebodyElseGivesTheBitsOfOurOwn) {
  const Training training({"mesh.dp=4", "train.steps=12", "train.eval_every=6", "checkpoint.every=0"});
  ASSERT_EQ(training.Run("own", {"mesh.hosts=2"}).status, 0);
  ASSERT_EQ(training.Run("one", {}).status, 0);
  const std::vector<std::pair<std::string, Shape>> launches{{"a_process_for_each_rank", {.hosts = 2, .processes = 2}},
                                                            {"a_process_for_each_host", {.hosts = 2, .processes = 1}}};
  for (const auto& [name, shape] : launches) {
    Job job(shape, {training.RunCommand(name)});
    const std::vector<Outcome> outcomes = job.Wait();
    ASSERT_TRUE(Succeeds(outcomes)) << name << ": " << ErrorsOf(outcomes);
    ExpectSameResults(training / "own", training / name);
  }
  Job job({.hosts = 1, .processes = 4}, {training.RunCommand("on_one_host")});
  const std::vector<Outcome> outcomes = job.Wait();
  ASSERT_TRUE(Succeeds(outcomes)) << ErrorsOf(outcomes);
  ExpectSameResults(training / "one", training / "on_one_host");
}

TEST(Hosts, EvaluateACheckpointOfOneHost) {
  const Training training({"data.eval_tokens=64", "mesh.dp=2"});
  ASSERT_EQ(training.Run().status, 0);
  const std::string checkpoint = (training / "run/checkpoints/") + CheckpointsOf(training / "run").back();
  const Outcome on_one = training.Eval(checkpoint);
  ASSERT_EQ(on_one.status, 0) << on_one.err;
  Job job({.hosts = 2, .processes = 1}, {training.Command("eval", {"--checkpoint", checkpoint, "--format", "json"})});
  const auto outcomes = job.Wait();
  ASSERT_TRUE(Succeeds(outcomes)) << ErrorsOf(outcomes);
  EXPECT_EQ(outcomes[0].out + outcomes[1].out, on_one.out);
}

TEST(Hosts, EvaluateOverAnyNetwork) {
  const Training training({"data.eval_tokens=64", "mesh.dp=2"});
  ASSERT_EQ(training.Run().status, 0);
  const std::string checkpoint = (training / "run/checkpoints/") + CheckpointsOf(training / "run").back();
  const Outcome expected = training.Eval(checkpoint);
  ASSERT_EQ(expected.status, 0) << expected.err;
  for (const std::string comm : {"gloo", "gloo-flat"}) {
    const Outcome outcome = RunProcess(training.Command(
        "eval", {"--checkpoint", checkpoint, "--format", "json", "--set", fmt::format("run.comm='{}'", comm)}));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(outcome.out, expected.out) << comm;
  }
}

TEST(Hosts, ARunContinuesOnOtherHosts) {
  const Training training({"train.steps=40", "checkpoint.every=10", "batch.micro=3"});
  const auto run_until = [&](const Shape& shape, const std::string& mesh, int64_t steps) {
    Job job(shape, {training.RunCommand("run", {mesh, fmt::format("train.steps={}", steps)})});
    const std::vector<Outcome> outcomes = job.Wait();
    EXPECT_TRUE(Succeeds(outcomes)) << ErrorsOf(outcomes);
    return ErrorsOf(outcomes);
  };
  EXPECT_THAT(run_until({.hosts = 2, .processes = 1}, "mesh.dp=2", 10), HasSubstr("started from scratch"));
  EXPECT_THAT(run_until({.hosts = 2, .processes = 2}, "mesh.dp=4", 20), HasSubstr("resumed from"));
  EXPECT_THAT(run_until({.hosts = 1, .processes = 2}, "mesh.dp=2", 30), HasSubstr("resumed from"));
  EXPECT_EQ(ReadMetrics(training / "run").last_step(), 30);
}

}  // namespace
}  // namespace shardc
