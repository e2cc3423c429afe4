// Sections in random legal orders, given only streams and events: the same bits. And the counter-proof: each event that
// is taken out of a plan is noticed, by the verifier and, with few exceptions, by a random order.
//
// An order is legal if each stream runs its ops in the order of the list, and each op follows the events that it waits
// for. A plan whose events do not order some hazard has legal orders with other results; a list that is run from top to
// bottom never shows them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "compiler/verify/verify.h"
#include "runtime/init/initial_values.h"
#include "tests/run/hazards.h"
#include "tests/support/in_process.h"
#include "tests/support/nightly.h"
#include "tests/support/shuffler.h"
#include "tests/support/training.h"

namespace shardc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const uint64_t NumSeeds = 200 / static_cast<uint64_t>(Stride(5));
/// Enough to tell what an event is good for; all but a few take one.
const uint64_t NumMutationSeeds = 24 / static_cast<uint64_t>(Stride(2));

struct ShuffleCase {
  const char* name;
  Sets sets;
};
const std::vector<ShuffleCase> MutationCases{
    {"dp 2, accumulate 3, prefetch 1",
     {"mesh.dp=2", "batch.accumulate=3", "shard.prefetch_forward=1", "shard.prefetch_backward=1", "model.layers=3"}},
    {"dp 3, recompute full", {"mesh.dp=3", "recompute.policy=full"}},
    {"dp 2, recompute as torchtitan, accumulate 2",
     {"mesh.dp=2", "recompute.policy=torchtitan-sac", "batch.accumulate=2"}},
    {"dp 2 x tp 2, accumulate 2, prefetch 1",
     {"mesh.dp=2", "mesh.tp=2", "batch.accumulate=2", "shard.prefetch_forward=1", "shard.prefetch_backward=1"}},
    {"dp 4 in groups of 2, prefetch 1, 3 blocks",
     {"mesh.dp=4", "shard.reshard_size=2", "shard.reshard_after_forward=true", "shard.prefetch_forward=1",
      "shard.prefetch_backward=1", "model.layers=3"}},
};
const ShuffleCase Bf16Case{"dp 2, bf16, chunks of the loss",
                           {"mesh.dp=2", "precision.compute=bf16", "loss.chunks=2", "batch.accumulate=2"}};

const ShuffleCase HostCase{"dp 3, gathered once for all, prefetch 1",
                           {"mesh.dp=3", "shard.gather_into=host", "batch.accumulate=2", "shard.prefetch_forward=1",
                            "shard.prefetch_backward=1", "shard.reshard_after_forward=true"}};

/// The guard has no zones in memory that the peers read.
auto GuardableCases() -> std::vector<ShuffleCase> {
  std::vector<ShuffleCase> cases = MutationCases;
  cases.push_back(Bf16Case);
  return cases;
}

auto AllCases() -> std::vector<ShuffleCase> {
  std::vector<ShuffleCase> cases = GuardableCases();
  cases.push_back(HostCase);
  return cases;
}

TEST(Shuffled, EveryOrderGivesTheSameBits) {
  // Compiled once for all launches, and not once per launch.
  const auto kernels = SharedInitKernels();
  const Training training;
  for (const auto& [name, sets] : AllCases()) {
    const Plan plan = training.Compile(sets);
    const ShuffledRuns runs = Shuffler(&plan, NumSeeds, false).Run();
    EXPECT_EQ(runs.error, "") << name;
    EXPECT_EQ(runs.num_tried, NumSeeds);
    EXPECT_THAT(runs.different, IsEmpty()) << name;
    // How many there are is the plan's matter: events leave little choice where memory is used again soon.
    EXPECT_GE(runs.orders.size(), NumSeeds / 4) << name;
    std::printf("%s: %zu different orders of the step under %lu seeds\n", name, runs.orders.size(), NumSeeds);
  }
}

/// The guard paints what is released, so that an order that reads it too late, or writes too early, is bound to show.
TEST(Shuffled, UnderTheGuard) {
  // Compiled once for all launches, and not once per launch.
  const auto kernels = SharedInitKernels();
  const Training training;
  for (const auto& [name, sets] : GuardableCases()) {
    Sets guarded = sets;
    guarded.push_back("run.guard=true");
    const Plan plan = training.Compile(guarded);
    const ShuffledRuns runs = Shuffler(&plan, 200 / 20, false).Run();
    EXPECT_EQ(runs.error, "") << name;
    EXPECT_THAT(runs.different, IsEmpty()) << name;
  }
}

/// Takes one event out: who signals it does not, who waits for it continues.
auto Without(Plan plan, EventId event) -> Plan {
  for (Section& section : plan.sections) {
    for (Op& op : section.ops) {
      std::erase(op.waits, event);
      if (op.signals == event) {
        op.signals = {};
      }
    }
  }
  return plan;
}

/// A plan that no verifier saw: an op waits for an event that nothing signals.
TEST(Shuffled, AWaitWithoutItsSignalFailsWithTheOp) {
  const Training training;
  Plan plan = training.Compile({"mesh.dp=2"});
  std::vector<Op>& ops = plan.sections[static_cast<size_t>(SectionKind::Step)].ops;
  const auto waiter = std::ranges::find_if(ops, [](const Op& op) { return !op.waits.empty(); });
  ASSERT_NE(waiter, ops.end());
  const EventId event = waiter->waits.front();
  std::ranges::find(ops, event, &Op::signals)->signals = {};
  const std::string expected =
      fmt::format("step 0 section step op {} {}: waits for event e{}, which nothing has signalled",
                  waiter - ops.begin(), ToText(waiter->kind()), event.index);
  EXPECT_THAT(RunInProcess(plan, 1).errors, Each(HasSubstr(expected)));
  EXPECT_THAT(Shuffler(&plan, 1, true).Run().error, HasSubstr(expected));
}

// No event is idle: without any one of them some pair of ops is unordered, which the verifier finds. Most show in a few
// random orders too.
TEST(Shuffled, EveryMissingEventIsNoticed) {
  // Compiled once for all launches, and not once per launch.
  const auto kernels = SharedInitKernels();
  const Training training;
  for (const auto& [name, sets] : MutationCases) {
    const Plan plan = training.Compile(sets);
    ASSERT_THAT(VerifyPlan(plan), IsEmpty()) << name;
    const Hazards hazards(plan);
    ASSERT_EQ(hazards.CountUnordered(plan), 0) << name;
    int num_shuffled = 0;
    for (int32_t i = 0; i < plan.num_events; ++i) {
      const Plan broken = Without(plan, EventId{i});
      EXPECT_GT(hazards.CountUnordered(broken), 0) << name << ", event " << i;
      EXPECT_THAT(VerifyPlan(broken), AllOf(Not(IsEmpty()), Each(HasSubstr("[missing-event]"))))
          << name << ", event " << i;
      const ShuffledRuns runs = Shuffler(&broken, NumMutationSeeds, true).Run();
      num_shuffled += !runs.different.empty() || !runs.error.empty() ? 1 : 0;
    }
    EXPECT_GE(plan.num_events, 20) << name;
    EXPECT_GE(num_shuffled, plan.num_events * 8 / 10) << name;
    std::printf("%s: the verifier rejects the plan without any one of %d events; %lu random orders show %d of them\n",
                name, plan.num_events, NumMutationSeeds, num_shuffled);
  }
}

}  // namespace
}  // namespace shardc
