// Two launches that want one checkpoint directory at almost the same time, many times; and one that is stopped for
// longer than a lease lives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <random>
#include <set>

#include "tests/support/nightly.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::HasSubstr;

/// The steps of the lines "step N: saved PATH".
auto StepsToldAsSaved(const std::string& log) -> std::set<int64_t> {
  std::set<int64_t> steps;
  for (size_t at = log.find(": saved "); at != std::string::npos; at = log.find(": saved ", at + 1)) {
    steps.insert(std::stoll(log.substr(log.rfind("step ", at) + 5)));
  }
  return steps;
}

/// Two plans of one run id and one checkpoint directory, which differ in what they train.
class TwoLaunches : public testing::Test {
 protected:
  static constexpr int64_t Steps = 5;
  struct Contender {
    std::string plan;
    /// What it saves when it is alone.
    std::map<std::string, std::string> whole;
  };

  TwoLaunches() {
    for (const char* lr : {"1e-2", "1e-3"}) {
      Contender& contender = contenders_.emplace_back();
      contender.plan = training_ / fmt::format("{}.plan", lr);
      const Outcome planned = RunProcess(training_.Command(
          "plan", {"-o", contender.plan, "--set", fmt::format("optimizer.lr={}", lr), "--set",
                   fmt::format("train.steps={}", Steps), "--set", "train.eval_every=0", "--set", "checkpoint.every=1",
                   "--set", "checkpoint.keep=0", "--set", fmt::format("checkpoint.dir=\"{}\"", shared())}));
      EXPECT_EQ(planned.status, 0) << planned.err;
      EXPECT_EQ(RunProcess(Command(contender, "whole")).status, 0);
      contender.whole = ContentsOf(shared());
      // Of two ranks each a file and a list of digests, and the manifest.
      EXPECT_EQ(contender.whole.size(), 5U * Steps);
      Clear();
    }
  }
  auto shared() const -> std::string { return training_ / "shared"; }
  auto Command(const Contender& contender, const std::string& run) const -> std::vector<std::string> {
    return {SHARDC_BINARY_DIR "/shardc-run", contender.plan, "--run-dir", training_ / run};
  }
  auto Clear() const -> void {
    for (const char* name : {"whole", "run-0", "run-1", "shared"}) {
      std::filesystem::remove_all(training_ / name);
    }
  }

  Training training_;
  std::vector<Contender> contenders_;
};

TEST_F(TwoLaunches, OfOneDirectoryOneTrains) {
  const int Rounds = 200 / static_cast<int>(Stride(8));
  constexpr int MostApartMs = 60;
  std::mt19937 random(16);
  int num_held = 0;
  for (int round = 0; round < Rounds; ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    const size_t leader = random() % 2;
    Process first(Command(contenders_[leader], "run-0"));
    Sleep(static_cast<int>(random() % (MostApartMs + 1)));
    Process second(Command(contenders_[1 - leader], "run-1"));
    const Outcome outcomes[2] = {first.Wait(), second.Wait()};

    int num_trained = 0;
    for (size_t i = 0; i < 2; ++i) {
      const Contender& contender = contenders_[i == 0 ? leader : 1 - leader];
      const std::string& err = outcomes[i].err;
      const auto told = StepsToldAsSaved(err);
      if (!told.empty()) {
        ++num_trained;
        EXPECT_EQ(outcomes[i].status, 0) << err;
        EXPECT_EQ(told.size(), static_cast<size_t>(Steps)) << err;
        // All that it told, as it wrote it, and nothing else.
        EXPECT_TRUE(ContentsOf(shared()) == contender.whole);
      } else if (outcomes[i].status == 6) {
        ++num_held;
        EXPECT_THAT(err, HasSubstr("checkpoint directory " + shared() + " is in use by run tiny on host "));
      } else {
        EXPECT_EQ(outcomes[i].status, 0) << err;
        EXPECT_THAT(err, HasSubstr(fmt::format("complete, {} of {} steps", Steps, Steps)));
      }
    }
    EXPECT_EQ(num_trained, 1) << outcomes[0].err << outcomes[1].err;
    if (HasFailure()) {
      return;
    }
    Clear();
  }
  std::printf("of %d rounds %d met an owner\n", Rounds, num_held);
  EXPECT_GT(num_held, Rounds / 10);
}

TEST_F(TwoLaunches, OneThatIsStoppedForTooLongLosesItAndTouchesNothing) {
  // More than the second takes until the first has seen that it is replaced, however busy the machine is.
  const Training training({"train.steps=20000", "train.eval_every=0", "checkpoint.every=1"});
  const std::string dir = fmt::format("checkpoint.dir=\"{}\"", training / "shared");
  Process first(training.RunCommand("first", {dir}));
  ASSERT_TRUE(first.Await([&] { return std::filesystem::exists(training / ("shared/" + CheckpointNameOf(3))); }))
      << first.err();
  first.KillGroup(SIGSTOP);
  Process second(training.RunCommand("second", {dir, "checkpoint.keep=0"}));
  ASSERT_TRUE(second.Await([&] { return second.err().find("resumed from") != std::string::npos; })) << second.err();
  EXPECT_THAT(second.err(), HasSubstr("it is taken over if its lease.json stands still for 30 s"));
  first.KillGroup(SIGCONT);
  const Outcome woken = first.Wait();
  EXPECT_EQ(woken.status, 6) << woken.err;
  EXPECT_THAT(woken.err, HasSubstr("was taken over by run tiny on host "));
  second.Kill(SIGTERM);
  const Outcome outcome = second.Wait();
  EXPECT_EQ(outcome.status, 75) << outcome.err;
  for (const int64_t step : StepsToldAsSaved(outcome.err)) {
    EXPECT_TRUE(std::filesystem::exists(training / ("shared/" + CheckpointNameOf(step) + "/manifest.json"))) << step;
  }
  const Outcome last = training.Run("third", {dir, "train.steps=3"});
  EXPECT_THAT(last.err, HasSubstr("nothing is left to do"));
}

}  // namespace
}  // namespace shardc
