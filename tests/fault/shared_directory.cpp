// One checkpoint directory and two launches, with the programs: one of them owns it, whatever is removed meanwhile, and
// what a launch says it saved is there as it saved it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// `checkpoint.dir` of a training's folder.
auto SharedBy(const Training& training) -> std::string { return training / "shared"; }

/// Saves after each step, and keeps all.
auto SharedSets(const Training& training, int64_t steps) -> Sets {
  return {fmt::format("train.steps={}", steps), "train.eval_every=0", "checkpoint.every=1", "checkpoint.keep=0",
          fmt::format("checkpoint.dir=\"{}\"", SharedBy(training))};
}

/// What a run that nobody disturbed leaves.
auto WholeRun(const Training& training, int64_t steps) -> std::map<std::string, std::string> {
  const Outcome whole = training.Run("whole", SharedSets(training, steps));
  EXPECT_EQ(whole.status, 0) << whole.err;
  auto contents = ContentsOf(SharedBy(training));
  std::filesystem::remove_all(SharedBy(training));
  return contents;
}

/// Every name "step-N" is a whole checkpoint as the undisturbed run has it.
auto ExpectOnlyGoodCheckpoints(const std::string& dir, const std::map<std::string, std::string>& whole) -> void {
  for (const auto& [path, content] : ContentsOf(dir)) {
    const std::string name = path.substr(0, path.find('/'));
    if (name.find('.') == std::string::npos) {
      ASSERT_TRUE(whole.contains(path)) << path;
      EXPECT_TRUE(whole.at(path) == content) << path;
    }
  }
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && name.find('.') == std::string::npos) {
      EXPECT_TRUE(std::filesystem::exists(entry.path() / "manifest.json")) << name;
      EXPECT_TRUE(std::filesystem::exists(entry.path() / "rank-00001.safetensors")) << name;
    }
  }
}

auto HasSteps(const std::string& dir, int64_t step) -> bool {
  return std::filesystem::exists(dir + "/" + CheckpointNameOf(step));
}

TEST(SharedDirectory, TheSecondLaunchIsToldWhoOwnsIt) {
  const Training training;
  const Sets sets = SharedSets(training, 100000);
  Process first(training.RunCommand("first", sets));
  ASSERT_TRUE(first.Await([&] { return HasSteps(SharedBy(training), 2); })) << first.err();
  // Whatever its run id.
  for (const char* run_id : {"tiny", "another"}) {
    Sets second_sets = sets;
    second_sets.push_back(fmt::format("start.run_id=\"{}\"", run_id));
    const Outcome second = training.Run("second", second_sets);
    EXPECT_EQ(second.status, 6) << second.err;
    EXPECT_THAT(
        second.err,
        AllOf(HasSubstr(fmt::format("checkpoint directory {} is in use by run tiny on host ", SharedBy(training))),
              HasSubstr("(process "), HasSubstr("set `checkpoint.dir` to another folder")));
    EXPECT_THAT(second.err, Not(HasSubstr("started from scratch")));
  }
  // Reading needs no lease.
  const Outcome evaluated = training.Eval(SharedBy(training) + "/" + CheckpointNameOf(1));
  EXPECT_EQ(evaluated.status, 0) << evaluated.err;
  ASSERT_TRUE(first.is_running());
  first.Kill(SIGTERM);
  const Outcome ended = first.Wait();
  EXPECT_EQ(ended.status, 75) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(SharedBy(training) + "/lease.json"));
}

TEST(SharedDirectory, ALaunchThatEndedLeavesNoLeaseToTheNext) {
  const Training training;
  ASSERT_EQ(training.Run("first", SharedSets(training, 2)).status, 0);
  const Outcome same = training.Run("second", SharedSets(training, 4));
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_THAT(same.err, HasSubstr("resumed from"));
  // Another run does not begin over the checkpoints of this one, but for no reason of a lease.
  Sets sets = SharedSets(training, 4);
  sets.emplace_back("start.run_id=another");
  const Outcome another = training.Run("third", sets);
  EXPECT_EQ(another.status, 5) << another.err;
  EXPECT_THAT(another.err, HasSubstr("it belongs to run tiny"));
  EXPECT_FALSE(std::filesystem::exists(SharedBy(training) + "/lease.json"));
}

TEST(SharedDirectory, ALeaseThatIsRemovedDuringARunCostsNoCheckpoint) {
  constexpr int64_t Steps = 400;
  const Training training;
  const Sets sets = SharedSets(training, Steps);
  const auto whole = WholeRun(training, Steps);
  Process first(training.RunCommand("first", sets));
  ASSERT_TRUE(first.Await([&] { return HasSteps(SharedBy(training), 3); })) << first.err();
  std::filesystem::remove(SharedBy(training) + "/lease.json");
  const Outcome second = training.Run("second", sets);
  const Outcome outcome = first.Wait();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("its lease.json was removed"), HasSubstr("was taken over by run tiny")));
  EXPECT_THAT(outcome.err, HasSubstr("checkpoint of step "));
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("resumed from"));
  ExpectOnlyGoodCheckpoints(SharedBy(training), whole);
  EXPECT_TRUE(HasSteps(SharedBy(training), Steps));
}

TEST(SharedDirectory, ARunDirectorysLeaseThatIsRemovedDuringARunCostsNoCheckpoint) {
  constexpr int64_t Steps = 400;
  const Training training;
  const Sets sets = SharedSets(training, Steps);
  const auto whole = WholeRun(training, Steps);
  Process first(training.RunCommand("first", sets));
  ASSERT_TRUE(first.Await([&] { return HasSteps(SharedBy(training), 3); })) << first.err();
  ASSERT_TRUE(std::filesystem::remove(training / "first/launch.json"));
  // Whose run directory this is nobody knows any more: the first ends before its next save. The second is refused while
  // the first still owns the checkpoints, and continues after it otherwise.
  const Outcome second = training.Run("first", sets);
  EXPECT_THAT(second.status, AnyOf(0, 6)) << second.err;
  const Outcome outcome = first.Wait();
  EXPECT_EQ(outcome.status, 6) << outcome.err;
  EXPECT_THAT(outcome.err, AnyOf(HasSubstr("launch.json was removed"), HasSubstr("was taken over by run ")));
  ExpectOnlyGoodCheckpoints(SharedBy(training), whole);
}

TEST(SharedDirectory, CheckpointsMayLieInTheRunDirectoryItself) {
  const Training training({"checkpoint.dir=run"});
  ASSERT_EQ(training.Run("run", {"train.steps=20"}).status, 0);
  const Outcome again = training.Run();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr(fmt::format("resumed from {}/step-00000020 at step 20", training / "run")));
  EXPECT_TRUE(std::filesystem::exists(training / "run/step-00000040/manifest.json"));
}

TEST(SharedDirectory, StrayEntriesAreNamedAndInNobodysWay) {
  const Training training;
  const std::string checkpoints = training / "run/checkpoints";
  std::filesystem::create_directories(checkpoints + "/step-00000020.tmp-tiny/sub");
  WriteText(training / "precious", "kept");
  std::filesystem::create_directories(checkpoints);
  std::filesystem::create_symlink(training / "precious", checkpoints + "/step-00000040.tmp-tiny");
  const Outcome outcome = training.Run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(
      outcome.err,
      AllOf(HasSubstr("warning: " + checkpoints + "/step-00000020.tmp-tiny bore the name of a save under way"),
            HasSubstr("warning: " + checkpoints + "/step-00000040.tmp-tiny bore the name of a save under way")));
  EXPECT_EQ(ReadText(training / "precious"), "kept");
  EXPECT_TRUE(std::filesystem::exists(checkpoints + "/step-00000020.tmp-tiny.stray-1/sub"));
  EXPECT_EQ(CheckpointsOf(training / "run").size(), 2U);
  EXPECT_THAT(training.Run().err, Not(HasSubstr("warning: ")));
}

}  // namespace
}  // namespace shardc
