// A job that does not fit is told what makes the largest part of what it needs smaller.
#include "runtime/launch/needed_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace shardc {
namespace {

using testing::HasSubstr;

constexpr int64_t MiB = int64_t{1} << 20;

TEST(NeededMemory, TheLargestPartHasTheRemedy) {
  Plan plan;
  plan.mesh = Mesh{{1, 4, 1}};
  plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = 5 * MiB;
  OutsideArenas outside{.num_ranks = 4};
  EXPECT_THAT(RemedyText(plan, outside), HasSubstr("the program and its libraries are most of it"));
  plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = 40 * MiB;
  EXPECT_THAT(RemedyText(plan, outside), HasSubstr("a smaller batch.micro"));
  plan.arena_bytes[static_cast<size_t>(Arena::Persistent)] = 50 * MiB;
  EXPECT_THAT(RemedyText(plan, outside), HasSubstr("fewer model.layers, or a smaller model.hidden"));
  outside.threads = Bytes{60 * MiB};
  EXPECT_THAT(RemedyText(plan, outside), HasSubstr("a smaller run.threads"));
  outside.plan = Bytes{130 * MiB};
  outside.calls = Bytes{30 * MiB};
  EXPECT_THAT(RemedyText(plan, outside), HasSubstr("the plan itself, op by op, is most of it"));
}

// They are in the arena of activations.
TEST(NeededMemory, SlotsOfThreadsAreTheThreads) {
  Plan plan;
  plan.mesh = Mesh{{1, 4, 1}};
  plan.arena_bytes[static_cast<size_t>(Arena::Transient)] = 100 * MiB;
  plan.buffers.Add({.name = "scratch", .category = Category::Workspace, .bytes = Bytes{80 * MiB}});
  EXPECT_THAT(RemedyText(plan, {.num_ranks = 4}), HasSubstr("a smaller batch.micro"));
  plan.run.threads = 16;
  EXPECT_THAT(RemedyText(plan, {.num_ranks = 4}), HasSubstr("a smaller run.threads"));
}

}  // namespace
}  // namespace shardc
