// A process that is forked while a thread of its parent holds a lock finds it locked for ever. So the launcher has no
// thread until its ranks are forked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/missing.h"
#include "tests/support/sanitized.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

TEST(LauncherThreads, BeginAfterTheRanksAreForked) {
  if (IsSanitized) {
    GTEST_SKIP() << "the leak sanitizer does not work under strace";
  }
  if (RunProcess({"/bin/sh", "-c", "strace -o /dev/null true"}).status != 0) {
    SkipWithout("strace");
    return;
  }
  const Training training({"mesh.dp=3", "train.steps=2", "train.eval_every=0", "checkpoint.every=0"});
  // Of the launcher alone.
  std::vector<std::string> command{"/usr/bin/env", "strace",          "-qq", "-e", "trace=clone,clone3,fork,vfork",
                                   "-o",           training / "calls"};
  const auto run = training.RunCommand();
  command.insert(command.end(), run.begin(), run.end());
  const Outcome outcome = RunProcess(command);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream lines(ReadText(training / "calls"));
  std::vector<std::string> made;
  for (std::string line; std::getline(lines, line);) {
    made.emplace_back(line.find("CLONE_THREAD") != std::string::npos ? "thread" : "process");
  }
  EXPECT_THAT(made, testing::ElementsAre("process", "process", "process", "thread")) << ReadText(training / "calls");
}

}  // namespace
}  // namespace shardc
