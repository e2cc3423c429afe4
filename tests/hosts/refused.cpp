// What keeps a launch over several processes from starting: all of them end, and one of them says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <unistd.h>

#include <fstream>

#include "tests/hosts/job.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using testing::HasSubstr;

auto ExpectRefused(const std::vector<Outcome>& outcomes, int code) -> std::string {
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, code) << outcome.err;
    EXPECT_TRUE(outcome.all_gone);
  }
  return OnlyErrorIn(ErrorsOf(outcomes));
}

TEST(Refused, AnotherRecipe) {
  const Training training;
  std::ofstream(training / "other.toml") << TinyRecipe() << "# another one\n";
  std::vector<std::string> other = training.RunCommand();
  std::ranges::replace(other, training / "tiny.toml", training / "other.toml");
  Job job({.hosts = 1, .processes = 2}, {training.RunCommand(), other});
  const std::string errors = ExpectRefused(job.Wait(), 6);
  EXPECT_THAT(errors, HasSubstr("processes of one launch differ"));
  EXPECT_THAT(errors, HasSubstr("digest of the recipe"));
  EXPECT_THAT(errors, HasSubstr("in process 1"));
}

TEST(Refused, AnotherSet) {
  const Training training;
  Job job({.hosts = 1, .processes = 2}, {training.RunCommand("run", {"train.steps=7"}), training.RunCommand()});
  const std::string errors = ExpectRefused(job.Wait(), 6);
  EXPECT_THAT(errors, HasSubstr("--set: train.steps=7 in process 0"));
  EXPECT_THAT(errors, HasSubstr("nothing in process 1"));
}

TEST(Refused, ARecipeThatIsWrongEverywhereIsToldOnce) {
  const Training training({"mesh.tp=3"});
  Job job({.hosts = 1, .processes = 2}, {training.RunCommand()});
  const auto outcomes = job.Wait();
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 3) << outcome.err;
  }
  EXPECT_THAT(outcomes[0].err, HasSubstr("tp-not-divisor"));
  EXPECT_EQ(outcomes[1].err, "");
}

TEST(Refused, AnEvaluationWhoseCheckpointAHostLacks) {
  const Training training({"data.eval_tokens=64", "mesh.dp=2"});
  const std::string seed = RepositoryPath(SampleSeed);
  Job job({.hosts = 2, .processes = 1}, {training.Command("eval", {"--checkpoint", seed}),
                                         training.Command("eval", {"--checkpoint", training / "no"})});
  const std::string errors = ExpectRefused(job.Wait(), 5);
  EXPECT_THAT(errors, HasSubstr("/no is no checkpoint: there is no such folder"));
}

/// The others of the launch never come.
TEST(Refused, AWrongCommandLineIsToldIfOthersDoNotCome) {
  const Training training({"mesh.dp=2", "mesh.tp=nine"});
  std::vector<std::string> command = training.RunCommand();
  command.insert(command.end(), {"--timeout", "2"});
  const std::string port = fmt::format("MASTER_PORT={}", FreePort());
  const Outcome first = RunProcess(command, {.environment = {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0",
                                                             "LOCAL_WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", port}});
  EXPECT_EQ(first.status, 3) << first.err;
  EXPECT_THAT(first.err, HasSubstr("`tp` is the text \"nine\""));
  EXPECT_THAT(first.err, HasSubstr("\nalso: process 1 of 2 (host 1) has not come within 2 s"));
}

/// Two processes, of which number `wrong` has these arguments besides.
auto RunWithOneWrong(size_t wrong, const std::vector<std::string>& arguments) -> std::vector<Outcome> {
  const Training training;
  std::vector<std::vector<std::string>> commands(2, training.RunCommand());
  commands[wrong].insert(commands[wrong].end(), arguments.begin(), arguments.end());
  return Job({.hosts = 1, .processes = 2}, commands).Wait();
}

// The other one would wait for ten minutes.
TEST(Refused, ARecipeThatIsWrongInOneProcess) {
  for (const size_t wrong : {0U, 1U}) {
    const auto outcomes = RunWithOneWrong(wrong, {"--set", "mesh.tp=3"});
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.status, 3) << outcome.err;
    }
    EXPECT_THAT(outcomes[0].err, HasSubstr("`heads` is 2, `tp` is 3"));
    EXPECT_EQ(outcomes[1].err, "");
    const std::string named = "error: process 1 \\([^)]+\\): the recipe is refused";
    EXPECT_THAT(ErrorLinesIn(outcomes[0].err), wrong == 0 ? testing::IsEmpty()
                                                          : testing::Matcher<const std::vector<std::string>&>(
                                                                testing::ElementsAre(testing::ContainsRegex(named))));
  }
}

TEST(Refused, ACommandLineThatIsWrongInOneProcess) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--trace-steps=1..2", "there is no --trace FILE"},
      {"--timeout=soon", "--timeout: `soon` stands where seconds belong"},
      {"--bogus", "unknown option `--bogus`"}};
  for (const auto& [argument, reason] : cases) {
    for (const size_t wrong : {0U, 1U}) {
      const std::string error = ExpectRefused(RunWithOneWrong(wrong, {argument}), 2);
      EXPECT_THAT(error, HasSubstr(reason));
      EXPECT_EQ(error.find("process 1 (") != std::string::npos, wrong == 1) << error;
    }
  }
}

TEST(Refused, AWorldThatIsNotTheMesh) {
  const Training training({"mesh.dp=4"});
  Job job({.hosts = 1, .processes = 2}, {training.RunCommand()});
  EXPECT_THAT(ExpectRefused(job.Wait(), 6), HasSubstr("started 2 processes on 1 host, and the mesh has 4 ranks"));
}

/// Runs the first task of `srun -n8 --pty` on this machine; nobody starts the program for the others.
auto RunInShellOfSlurm(const Training& training, const std::string& tasks) -> Outcome {
  char name[256] = {};
  CHECK(gethostname(name, sizeof(name) - 1) == 0, "gethostname");
  return RunProcess(training.RunCommand(),
                    {.environment = {"SLURM_JOB_ID=77", "SLURM_STEP_ID=0", "SLURM_NTASKS=8", "SLURM_PROCID=0",
                                     "SLURM_STEP_NUM_TASKS=8", "SLURM_LOCALID=0", "SLURM_NODEID=0",
                                     "SLURM_STEP_TASKS_PER_NODE=" + tasks,
                                     fmt::format("SLURM_STEP_NUM_NODES={}", tasks == "8" ? 1 : 2),
                                     fmt::format("SLURM_STEP_NODELIST={}{}", name, tasks == "8" ? "" : ",node2"),
                                     fmt::format("MASTER_PORT={}", FreePort())}});
}

TEST(Refused, MeshOfAnotherSizeIsNotWaitedFor) {
  const Training training({"mesh.dp=2"});
  const Outcome one_host = RunInShellOfSlurm(training, "8");
  EXPECT_EQ(one_host.status, 6);
  EXPECT_THAT(one_host.err,
              HasSubstr("Slurm started 8 processes on 1 host, and the mesh has 2 ranks; start one process "
                        "for each rank, or one for each host; in a shell of `srun --pty`, unset "
                        "SLURM_STEP_ID, or start the shell by `srun -n1 --pty`\n"));
  const Training hosts({"mesh.dp=4", "mesh.hosts=4"});
  const Outcome two_hosts = RunInShellOfSlurm(hosts, "4(x2)");
  EXPECT_EQ(two_hosts.status, 6);
  EXPECT_THAT(two_hosts.err, HasSubstr("mesh.hosts is 4, and Slurm started processes on 2 hosts"));
  for (const Outcome& outcome : {one_host, two_hosts}) {
    EXPECT_LT(outcome.waited.value, 10 + LoadAllowance);
    EXPECT_THAT(outcome.err, testing::Not(HasSubstr("waiting for")));
  }
}

TEST(Refused, AMeshThatIsTooSmallForTheHosts) {
  const Training training({"mesh.dp=1"});
  Job job({.hosts = 2, .processes = 1}, {training.RunCommand()});
  const std::string errors = ExpectRefused(job.Wait(), 6);
  EXPECT_THAT(errors,
              HasSubstr("started processes on 2 hosts, and the mesh has 1 rank, so that hosts cannot have equally "
                        "many; launch on a number of hosts that divides 1, or change [mesh]"));
  EXPECT_THAT(errors, testing::Not(HasSubstr("--set")));
}

TEST(Refused, FewerCoresThanRanks) {
  const Training training({"mesh.dp=4"});
  const std::vector<std::string> command = training.RunCommand();
  std::vector<std::string> on_one_core{"/usr/bin/env", "taskset", "-c", fmt::format("{}", sched_getcpu())};
  on_one_core.insert(on_one_core.end(), command.begin(), command.end());
  Job ranks({.hosts = 2, .processes = 2}, {command, command, on_one_core});
  EXPECT_THAT(ExpectRefused(ranks.Wait(), 6), HasSubstr(" has 1 core for 2 ranks; start fewer ranks per host"));
  Job launchers({.hosts = 2, .processes = 1}, {command, on_one_core});
  EXPECT_THAT(ExpectRefused(launchers.Wait(), 6), HasSubstr(" has 1 core for 2 ranks; start fewer ranks per host"));
  EXPECT_TRUE(CheckpointsOf(training / "run").empty());
}

TEST(Refused, AnotherNumberOfHostsThanTheRecipeHas) {
  const Training training({"mesh.dp=4", "mesh.hosts=4"});
  Job job({.hosts = 2, .processes = 2}, {training.RunCommand()});
  const auto outcomes = job.Wait();
  EXPECT_EQ(outcomes[0].status, 6) << outcomes[0].err;
  EXPECT_THAT(outcomes[0].err, HasSubstr("mesh.hosts is 4"));
}

TEST(Refused, TokensThatAreNotThere) {
  const Training training({"mesh.dp=2", "data.tokens=['nowhere.bin']"});
  Job job({.hosts = 2, .processes = 1}, {training.RunCommand()});
  const auto outcomes = job.Wait();
  EXPECT_EQ(outcomes[0].status, 3) << outcomes[0].err;
  EXPECT_THAT(outcomes[0].err, HasSubstr("nowhere.bin"));
}

TEST(Refused, ARunDirectoryThatAnotherLaunchHas) {
  const Training training({"mesh.dp=2", "train.steps=100000", "train.eval_every=0"});
  Job first({.hosts = 2, .processes = 1}, {training.RunCommand()});
  ASSERT_TRUE(first.at(0).Await([&] { return ReadMetrics(training / "run").last_step() >= 2; })) << first.at(0).err();
  Job second({.hosts = 2, .processes = 1}, {training.RunCommand()});
  EXPECT_THAT(ExpectRefused(second.Wait(), 6), HasSubstr("is in use by run"));
  EXPECT_TRUE(first.at(0).is_running());
}

TEST(Refused, AWorldOfAnotherSizeInOneProcess) {
  struct Case {
    const char* of_process_0;
    const char* of_process_1;
    const char* local_of_process_0;
    Sets sets;
    const char* expected;
  };
  // Two hosts and three divide six ranks, so that each process by itself has nothing to refuse.
  for (const Case& c :
       {Case{"2", "3", "1", {"mesh.dp=6", "batch.global=6"}, "was started as one of 3, and process 0 as one of 2"},
        Case{"2", "2", "2", {"mesh.dp=2"}, "was started as one of 1 on its host, and process 0 as one of 2"}}) {
    const Training training(c.sets);
    const std::string port = std::to_string(FreePort());
    const auto start = [&](const char* rank, const char* world, const char* local) {
      return std::make_unique<Process>(
          training.RunCommand(),
          ProcessOptions{.environment = {"MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port, fmt::format("RANK={}", rank),
                                         fmt::format("WORLD_SIZE={}", world), "LOCAL_RANK=0",
                                         fmt::format("LOCAL_WORLD_SIZE={}", local)}});
    };
    const auto first = start("0", c.of_process_0, c.local_of_process_0);
    const auto second = start("1", c.of_process_1, "1");
    for (Process* const process : {first.get(), second.get()}) {
      const Outcome outcome = process->Wait();
      EXPECT_EQ(outcome.status, 6) << outcome.err;
      EXPECT_THAT(outcome.err, HasSubstr(c.expected));
    }
  }
}

TEST(Refused, MoreHostsThanOneMachinePlays) {
  const Training training({"mesh.dp=65", "mesh.hosts=65", "batch.global=65"});
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("one machine plays at most 64"));
}

}  // namespace
}  // namespace shardc
