// Estimated times of steps: against steps that were measured, and against what has to follow when a rate or a schedule
// changes.
#include "compiler/cost/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/base/machine_rows.h"
#include "compiler/cost/op_times.h"
#include "compiler/ops/communication.h"
#include "compiler/ops/op_facts.h"
#include "compiler/report/compare.h"
#include "tests/golden/golden_case.h"

namespace shardc {
namespace {

using SetTexts = std::vector<std::string>;

auto GpuPlan(const std::string& path, SetTexts sets = {}) -> Plan {
  sets.emplace_back("run.device=cuda");
  auto plan = CompileRecipeFile(path, sets);
  CHECK(plan.ok(), "{}: {}", path, plan.error().message);
  return *std::move(plan);
}

auto StepOf(const Plan& plan, const MachineRow* machine = nullptr) -> StepTime {
  const auto time = StepTimeOf(plan, machine);
  CHECK(time.has_value(), "a plan for GPUs has a time");
  return *time;
}

auto H100() -> MachineRow { return *FindMachine("h100-sxm"); }

// The record of one H100, before plans for GPUs had fused ops (tests/gpu/last_run.json, docs/gpu.md).
TEST(StepTime, IsNearMeasuredSteps) {
  struct Measured {
    std::string recipe;
    SetTexts sets;
    double ms;
    /// The part of it by which an estimate may differ.
    double tolerance;
  };
  for (const Measured& step :
       {Measured{"tests/gpu/llama_1b.toml", {}, 261.0, 0.06},
        Measured{"tests/gpu/llama_8b_slice.toml", {}, 144.5, 0.06},
        Measured{"tests/gpu/llama_124m.toml", {}, 66.4, 0.06},
        Measured{"tests/gpu/llama_124m.toml", {"batch.global=16"}, 35.7, 0.06},
        Measured{"recipes/quickstart.toml", {"mesh.dp=1", "batch.micro=16"}, 3.36, 0.2},
        Measured{"recipes/quickstart.toml", {"mesh.dp=1", "batch.micro=16", "precision.compute=bf16"}, 1.91, 0.2}}) {
    SetTexts sets = step.sets;
    sets.emplace_back("run.kernels=plain");
    const StepTime time = StepOf(GpuPlan(step.recipe, sets));
    EXPECT_NEAR(time.step().value * 1e3 / step.ms, 1, step.tolerance) << step.recipe;
  }
  // Op by op, the first of them took 186 ms in products and 33 in attention.
  const StepTime time = StepOf(GpuPlan("tests/gpu/llama_1b.toml", {"run.kernels=plain"}));
  EXPECT_NEAR(time.products.value, 0.186, 0.010);
  EXPECT_NEAR(time.attention.value, 0.033, 0.005);
}

TEST(StepTime, DependsOnLinkAndOrder) {
  const std::string recipe = "recipes/published/llama3_8b.toml";
  const Plan plan = GpuPlan(recipe, {"model.layers=4"});
  const StepTime time = StepOf(plan);
  MachineRow slow = H100();
  slow.link_bandwidth.value /= 8;
  const StepTime by_slow_link = StepOf(plan, &slow);
  EXPECT_GT(by_slow_link.peers.value, 2 * time.peers.value);
  // Products are slower as long as a collective runs, and no more than that.
  EXPECT_GT(by_slow_link.products.value, 1.02 * time.products.value);
  EXPECT_LT(by_slow_link.products.value, time.products.value / 0.74);
  // Nothing waits for a gather that comes in time.
  const StepTime late =
      StepOf(GpuPlan(recipe, {"model.layers=4", "shard.prefetch_forward=0", "shard.prefetch_backward=0"}));
  EXPECT_GT(late.peers.value, time.peers.value + 0.001);
  EXPECT_LT(late.products.value, time.products.value);
}

TEST(StepTime, LinkCarriesNoMoreThanItsRate) {
  // Two streams share the network: together they take as long as all of its bytes.
  const Plan plan = GpuPlan("recipes/published/llama3_405b.toml", {"model.layers=4", "mesh.hosts=2048"});
  MachineRow slow = H100();
  slow.network_bandwidth.value /= 100;
  const StepTime time = StepOf(plan, &slow);
  Bytes between;
  for (const Communication& row : CommunicationOf(plan, SectionKind::Step)) {
    between += row.between_hosts(plan.mesh);
  }
  const double least = static_cast<double>(between.value) / (slow.network_bandwidth.value * slow.rates.network);
  EXPECT_GT(time.step().value, least);
  EXPECT_LT(time.step().value, 1.25 * least);
}

TEST(StepTime, AssumesHostsOfEight) {
  const SetTexts layers{"model.layers=2"};
  const StepTime assumed = StepOf(GpuPlan("recipes/published/llama3_8b_32x8.toml", layers));
  const StepTime named = StepOf(GpuPlan("recipes/published/llama3_8b_32x8.toml", {"model.layers=2", "mesh.hosts=32"}));
  EXPECT_EQ(assumed.assumed_of_host, 8);
  EXPECT_EQ(named.assumed_of_host, 0);
  EXPECT_NEAR(assumed.step().value, named.step().value, 0.02 * named.step().value);
  EXPECT_EQ(StepOf(GpuPlan("recipes/published/llama3_8b.toml", layers)).assumed_of_host, 0);
  // A host has as many as divide the ranks.
  const SetTexts twelve{"model.layers=2", "mesh.dp=12", "batch.global=12"};
  EXPECT_EQ(StepOf(GpuPlan("recipes/published/llama3_8b.toml", twelve)).assumed_of_host, 6);
}

TEST(StepTime, LastPassStandsForRest) {
  const Plan plan = GpuPlan("recipes/published/llama3_8b.toml",
                            {"model.layers=2", "mesh.dp=2", "batch.global=16", "batch.accumulate=8"});
  const auto followed = StepTimeOf(plan, nullptr, 8);
  EXPECT_NEAR(StepOf(plan).step().value, followed->step().value, 0.002 * followed->step().value);
  EXPECT_GT(followed->step().value,
            3 * StepOf(GpuPlan("recipes/published/llama3_8b.toml",
                               {"model.layers=2", "mesh.dp=2", "batch.global=4", "batch.accumulate=2"}))
                    .step()
                    .value);
}

TEST(StepTime, PassesBeginOneAfterAnother) {
  const auto with_passes = [](int64_t passes) {
    return StepOf(GpuPlan(
        "recipes/published/llama3_8b.toml",
        {"model.layers=4", fmt::format("batch.accumulate={}", passes), fmt::format("batch.global={}", 8 * passes)}));
  };
  // The first gathers of a pass wait for the end of the pass before it, so they are not hidden.
  const StepTime two = with_passes(2);
  const StepTime three = with_passes(3);
  const Plan plan = GpuPlan("recipes/published/llama3_8b.toml", {"model.layers=4"});
  double first_gather = 0;
  const OpTimes times(plan, H100());
  for (const Op& op : plan.section(SectionKind::Step).ops) {
    if (FactsOf(op).collective == CollectiveKind::AllGather) {
      first_gather = times.Of(op).device;
      break;
    }
  }
  ASSERT_GT(first_gather, 0.001);
  EXPECT_GT(three.peers.value - two.peers.value, first_gather);
}

TEST(StepTime, LatencyGrowsWithHosts) {
  const auto on = [](int64_t hosts) {
    return StepOf(GpuPlan("recipes/published/llama3_8b.toml",
                          {"model.layers=2", fmt::format("mesh.dp={}", 8 * hosts), fmt::format("mesh.hosts={}", hosts),
                           fmt::format("batch.global={}", 8 * hosts)}))
        .step()
        .value;
  };
  // Ranks wait for the slowest of them, too.
  EXPECT_GT(on(256), 1.05 * on(16));
}

TEST(StepTime, AttentionFollowsItsKeys) {
  const auto attention = [](const SetTexts& sets) {
    return StepOf(GpuPlan("recipes/published/llama3_8b.toml", sets)).attention.value;
  };
  // On an H100 the backward of one of 32 blocks took 3.36 ms in two calls, 3.19 in one, 3.88 in four, and 2.76 if it
  // adds in any order.
  const double in_two = attention({"mesh.dp=1"});
  EXPECT_NEAR(in_two - attention({"mesh.dp=1", "run.attention_workspace=8 GiB"}), 0.0054, 0.002);
  EXPECT_NEAR(attention({"mesh.dp=1", "run.attention_workspace=1100 MiB"}) - in_two, 0.0166, 0.004);
  EXPECT_NEAR(in_two - attention({"mesh.dp=1", "run.deterministic=false"}), 0.0192, 0.004);
}

TEST(StepTime, SeveralRanksHaveInterval) {
  const StepTime one = StepOf(GpuPlan("recipes/published/llama3_8b.toml", {"mesh.dp=1", "model.layers=1"}));
  EXPECT_EQ(FormatStep(one), FormatTime(one.step()));
  EXPECT_EQ(FormatStep({.products = Seconds{0.83}, .ranks = 8}), "830 ms (726 to 934 ms)");
  EXPECT_EQ(FormatStep({.products = Seconds{0.95}, .ranks = 8}), "950 ms (831 ms to 1.07 s)");
}

TEST(StepTime, CpuHasNone) {
  auto plan = CompileRecipeFile("recipes/quickstart.toml");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  EXPECT_FALSE(StepTimeOf(*plan).has_value());
}

TEST(StepTime, ComparedIfBothHaveIt) {
  const std::string recipe = "recipes/published/llama3_8b.toml";
  const Plan gpu = GpuPlan(recipe, {"model.layers=2"});
  const Plan other = GpuPlan(recipe, {"model.layers=2", "recompute.policy=full"});
  const auto cpu = CompileRecipeFile(recipe, {"model.layers=2"});
  ASSERT_TRUE(cpu.ok()) << cpu.error().message;
  const auto times = [](const Plan& a, const Plan& b) {
    return std::ranges::count(Compare(Explain(a), Explain(b)).figures, FigureKind::Time, &FigureChange::kind);
  };
  EXPECT_EQ(times(gpu, other), 1);
  EXPECT_EQ(times(*cpu, gpu), 0);
  EXPECT_EQ(times(gpu, *cpu), 0);
}

TEST(StepTime, UnitsSuitTheTime) {
  EXPECT_EQ(FormatTime(Seconds{49.4e-6}), "49 us");
  EXPECT_EQ(FormatTime(Seconds{999.6e-6}), "1.00 ms");
  EXPECT_EQ(FormatTime(Seconds{9.996e-3}), "10.0 ms");
  EXPECT_EQ(FormatTime(Seconds{262.4e-3}), "262 ms");
  EXPECT_EQ(FormatTime(Seconds{0.9996}), "1.00 s");
  EXPECT_EQ(FormatTime(Seconds{1090.2}), "1090 s");
}

}  // namespace
}  // namespace shardc
