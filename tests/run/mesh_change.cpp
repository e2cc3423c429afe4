// State over meshes: ranks that hold the same have the same bits, and from what one mesh saves another continues.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>

#include "runtime/core/runner.h"
#include "runtime/init/initial_values.h"
#include "runtime/launch/launch.h"
#include "tests/support/training.h"
#include "tests/support/whole_state.h"

namespace shardc {
namespace {

/// What one start of a run leaves to be compared.
struct Launch {
  /// Completed steps at its begin.
  int64_t begun = -1;
  WholeState at_begin;
  WholeState at_end;
  std::vector<double> losses;
  std::string error;
};

/// Begins or comes back in a run directory, takes `steps` steps and saves.
auto RunLaunch(const Plan& plan, const std::string& run_dir, int64_t steps, Launch& launch) -> void {
  // Compiled once for all launches, and not once per launch.
  static const auto kernels = SharedInitKernels();
  std::mutex mutex;
  const auto run = [&](RankContext& context) -> Status {
    auto made = RankRunner::Create(context);
    if (!made) {
      return made.error();
    }
    RankRunner& runner = **made;
    const auto begun = runner.Begin();
    if (!begun) {
      return begun.error();
    }
    const auto take = [&](WholeState& state) {
      const std::lock_guard lock(mutex);
      state.Take(plan, runner, context.rank);
    };
    take(launch.at_begin);
    for (int64_t step = 0; step < steps; ++step) {
      const auto halt = runner.Step();
      if (!halt) {
        return halt.error();
      }
      if (context.rank == 0) {
        launch.begun = *begun;
        launch.losses.push_back(runner.scalars()[plan.ScalarOf(ScalarRole::Loss)]);
      }
    }
    take(launch.at_end);
    return runner.RunSection(SectionKind::Save);
  };
  const auto code = LaunchThreads(plan, {.run_dir = run_dir}, [&](RankContext& context) -> ErrorOr<ExitCode> {
    const Status status = run(context);
    if (!status) {
      const std::lock_guard lock(mutex);
      launch.error = status.error().message;
      return status.error();
    }
    return ExitCode::Ok;
  });
  ASSERT_TRUE(code.ok()) << code.error().message;
  ASSERT_EQ(launch.error, "");
}

auto NameOf(const Sets& sets) -> std::string { return fmt::format("{}", fmt::join(sets, " ")); }

// Of each replica, and on each rank of tp: after init and after steps.
TEST(MeshChange, RanksThatHoldTheSameHaveTheSameBits) {
  // 257 ids are dealt out 129 and 128.
  const Training training({"model.vocab=257", "data.eval_tokens=0", "train.eval_every=0"});
  const std::vector<Sets> meshes{
      {"mesh.dp=1", "mesh.tp=2"},
      {"mesh.dp=2", "mesh.tp=2"},
      {"mesh.replicate=2", "mesh.dp=2"},
      {"mesh.replicate=3", "mesh.dp=1", "optimizer.clip_norm=0.1"},
      {"mesh.replicate=2", "mesh.dp=1", "mesh.tp=2", "precision.compute=bf16", "batch.accumulate=2"},
      {"mesh.replicate=2", "mesh.dp=2", "mesh.tp=2"},
  };
  std::optional<Launch> one;
  RunLaunch(training.Compile({"mesh.dp=1"}), training / "one", 3, one.emplace());
  EXPECT_EQ(one->at_begin.num_missing(), 0);
  EXPECT_EQ(one->at_begin.num_shared(), 0);
  int number = 0;
  for (const Sets& sets : meshes) {
    Launch launch;
    RunLaunch(training.Compile(sets), training / fmt::format("run{}", ++number), 3, launch);
    for (const WholeState* state : {&launch.at_begin, &launch.at_end}) {
      EXPECT_EQ(state->num_missing(), 0) << NameOf(sets);
      EXPECT_GT(state->num_shared(), 0) << NameOf(sets);
      EXPECT_EQ(state->num_different(), 0) << NameOf(sets);
    }
    EXPECT_EQ(launch.at_begin.DifferenceFrom(one->at_begin), "") << NameOf(sets);
    EXPECT_NE(launch.at_end.DifferenceFrom(launch.at_begin), "") << NameOf(sets);
  }
}

/// What the ranks stored in the newest checkpoint.
auto StoredState(const std::string& run_dir) -> std::map<std::string, std::string> {
  std::map<std::string, std::string> files = NewestCheckpointOf(run_dir);
  std::erase_if(files, [](const auto& file) { return !file.first.ends_with(".safetensors"); });
  return files;
}

// The parity tests hold gradients to an oracle with ranks that are threads; ranks that are processes leave the same
// bits.
TEST(MeshChange, ProcessesLeaveTheBitsThatThreadsDo) {
  const Training training({"train.steps=3", "data.eval_tokens=0", "train.eval_every=0"});
  const std::vector<Sets> meshes{
      {"mesh.dp=2"}, {"mesh.dp=1", "mesh.tp=2"}, {"mesh.dp=2", "mesh.tp=2"}, {"mesh.replicate=2", "mesh.dp=2"}};
  const std::vector<Sets> policies{{"recompute.policy=none"},
                                   {"recompute.policy=full", "shard.reshard_after_forward=true"},
                                   {"recompute.policy=selective", "recompute.save=[\"attention\"]"}};
  int number = 0;
  for (const Sets& mesh : meshes) {
    for (const char* compute : {"precision.compute=fp32", "precision.compute=bf16"}) {
      for (const char* accumulate : {"batch.accumulate=1", "batch.accumulate=3"}) {
        Sets sets = mesh;
        const Sets& policy = policies[static_cast<size_t>(++number) % policies.size()];
        sets.insert(sets.end(), policy.begin(), policy.end());
        sets.insert(sets.end(), {compute, accumulate});
        const std::string name = fmt::format("{}", number);
        const Outcome outcome = training.Run("processes" + name, sets);
        ASSERT_EQ(outcome.status, 0) << NameOf(sets) << outcome.err;
        Launch launch;
        RunLaunch(training.Compile(sets), training / ("threads" + name), 3, launch);
        const auto expected = StoredState(training / ("threads" + name));
        EXPECT_GE(expected.size(), 2U) << NameOf(sets);
        EXPECT_EQ(StoredState(training / ("processes" + name)), expected) << NameOf(sets);
      }
    }
  }
}

// Parameters and moments come back bit for bit; what follows are the same steps, with sums in another order.
TEST(MeshChange, AnotherMeshGoesOn) {
  const std::vector<Sets> kinds{
      {"precision.compute=fp32"},
      {"precision.compute=bf16"},
      {"precision.compute=fp32", "optimizer.name=sgd"},
      {"precision.compute=fp32", "optimizer.name=sgd", "optimizer.momentum=0.9", "optimizer.nesterov=true"}};
  for (const Sets& kind : kinds) {
    // Sums in another order; and in bf16 each part of a product is rounded before tp sums them, by 2^-9 at most.
    const double tolerance = kind[0].ends_with("bf16") ? 0x1p-9 : 1e-7;
    double greatest = 0;
    Sets all = kind;
    all.insert(all.end(), {"model.vocab=257", "data.eval_tokens=0", "train.eval_every=0"});
    const Training training(all);
    const Sets dp2{"mesh.dp=2"};
    Launch whole;
    RunLaunch(training.Compile(dp2), training / "whole", 6, whole);
    ASSERT_EQ(whole.losses.size(), 6U);
    const std::vector<Sets> others{
        {"mesh.dp=1", "mesh.tp=2"}, {"mesh.replicate=2", "mesh.dp=1"}, {"mesh.dp=2", "mesh.tp=2"}};
    int number = 0;
    for (const Sets& other : others) {
      for (const auto& [from, to] : {std::pair{dp2, other}, std::pair{other, dp2}}) {
        const std::string name = fmt::format("{}, {} to {}", NameOf(kind), NameOf(from), NameOf(to));
        const std::string run_dir = training / fmt::format("run{}", ++number);
        Launch first;
        RunLaunch(training.Compile(from), run_dir, 3, first);
        Launch second;
        RunLaunch(training.Compile(to), run_dir, 3, second);
        EXPECT_EQ(first.begun, 0) << name;
        EXPECT_EQ(second.begun, 3) << name;
        EXPECT_EQ(second.at_begin.num_missing(), 0) << name;
        EXPECT_EQ(second.at_begin.num_different(), 0) << name;
        EXPECT_EQ(second.at_begin.DifferenceFrom(first.at_end), "") << name;
        std::vector<double> losses = first.losses;
        losses.insert(losses.end(), second.losses.begin(), second.losses.end());
        ASSERT_EQ(losses.size(), 6U) << name;
        for (size_t i = 0; i < 6; ++i) {
          const double relative = std::abs(losses[i] / whole.losses[i] - 1);
          EXPECT_LE(relative, tolerance) << name << ", step " << i + 1;
          greatest = std::max(greatest, relative);
        }
      }
    }
    std::printf("%s: losses differ by %.2g of themselves at most\n", NameOf(kind).c_str(), greatest);
  }
}

}  // namespace
}  // namespace shardc
