// What shardc hands over to shardc-run, which lies beside it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "compiler/base/files.h"
#include "tests/cli/program.h"
#include "tests/support/repository.h"

namespace shardc {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

/// A stand-in for shardc-run that says how it was called.
class BesideRuntime : public testing::Test {
 protected:
  BesideRuntime() {
    std::filesystem::copy_file(Shardc(), folder_ / "shardc");
    recipe_ = WriteIn(folder_, "sound.toml", SoundRecipe());
  }
  auto AddRuntime(const std::string& name = "shardc-run") -> void {
    const std::string path = WriteIn(folder_, name,
                                     "#!/bin/sh\nprintf '%s|' \"$@\"\nhead -c 5 \"$1\"\n"
                                     "[ \"$3\" = --asked-text ] && tr -d '\\n' < \"$4\"; true\n"
                                     "exit 7\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  auto Run(const std::vector<std::string>& arguments) -> Finished { return RunProgram(folder_ / "shardc", arguments); }

  TemporaryFolder folder_;
  std::string recipe_;
};

TEST_F(BesideRuntime, RunHandsOverThePlan) {
  AddRuntime();
  const std::string default_dir = folder_ / "runs/sound";
  Finished finished = Run({"run", recipe_});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  const std::string asked =
      fmt::format("/proc/self/fd/[0-9]+\\|--asked={}\\|--asked-text\\|/proc/self/fd/[0-9]+\\|--run-dir=", recipe_);
  const std::string compiled = "\\|plan .model.*train.*";
  EXPECT_THAT(finished.out, MatchesRegex(asked + default_dir + compiled));

  const std::string other_dir = folder_ / "a/b";
  finished = Run({"run", recipe_, "--run-dir", other_dir, "--set", "start.run_id=x"});
  EXPECT_THAT(finished.out, MatchesRegex(asked + other_dir + compiled));

  const std::string plan = folder_ / "sound.plan";
  EXPECT_EQ(Run({"plan", recipe_, "-o", plan}).exit_code, 0);
  EXPECT_EQ(Run({"run", plan}).out, fmt::format("{0}|--asked={0}|plan ", plan));
  EXPECT_EQ(Run({"run", plan, "--run-dir", "d"}).out, fmt::format("{0}|--asked={0}|--run-dir=d|plan ", plan));
  EXPECT_EQ(Run({"run", plan, "--set", "mesh.dp=2"}).exit_code, 2);
}

TEST_F(BesideRuntime, EvalHandsOverAPlanThatStaysInMemory) {
  AddRuntime();
  const std::string checkpoint = RepositoryPath(SampleSeed);
  const Finished finished =
      Run({"eval", recipe_, "--checkpoint", checkpoint, "--format=json", "--set", "data.eval_tokens=64"});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_THAT(finished.out, HasSubstr("|--eval|" + checkpoint + "|--format|json|plan "));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(BesideRuntime, ThePlansDeviceChoosesTheRuntime) {
  AddRuntime();
  const std::string plan = folder_ / "gpu.plan";
  EXPECT_EQ(Run({"plan", recipe_, "-o", plan, "--set", "run.device=cuda"}).exit_code, 0);
  const std::vector<std::vector<std::string>> calls{{"run", recipe_, "--set", "run.device=cuda"}, {"run", plan}};
  for (const auto& call : calls) {
    const Finished missing = Run(call);
    EXPECT_EQ(missing.exit_code, 6);
    EXPECT_THAT(missing.err, HasSubstr("the plan is for cuda, and this build has no shardc-run-cuda, which `tools/dev "
                                       "build --cuda` makes beside shardc"));
  }
  AddRuntime("shardc-run-cuda");
  for (const auto& call : calls) {
    EXPECT_EQ(Run(call).exit_code, 7);
  }
}

TEST_F(BesideRuntime, MissingLibrariesAreNamed) {
  // Any program of which a library is gone.
  std::string program = *ReadFile(Shardc(), size_t{1} << 30);
  const std::string_view name = "libfmt.so";
  const size_t at = program.find(name);
  ASSERT_NE(at, std::string::npos);
  program.replace(at, name.size(), "libgon.so");
  std::filesystem::permissions(WriteIn(folder_, "shardc-run-cuda", program), std::filesystem::perms::owner_all);
  const Finished finished = Run({"run", recipe_, "--set", "run.device=cuda"});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_THAT(finished.err, HasSubstr("error: shardc-run-cuda needs libraries that are not found: libgon.so"));
}

TEST_F(BesideRuntime, WithoutARuntimeTheMessageSaysWhereItBelongs) {
  const Finished finished = Run({"run", recipe_});
  EXPECT_EQ(finished.exit_code, 6);
  EXPECT_THAT(finished.err, HasSubstr("shardc and shardc-run lie in one folder"));
}

TEST_F(BesideRuntime, WithoutARuntimeAnErrorOfALaunchIsToldAllTheSame) {
  const Finished finished = RunProgram(
      folder_ / "shardc", {"run", recipe_, "--timeout", "never"},
      {"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_THAT(finished.err, HasSubstr("error: --timeout: `never` stands where seconds belong"));
  EXPECT_THAT(finished.err, HasSubstr("the other processes of this launch do not learn of this: "));
}

}  // namespace
}  // namespace shardc
