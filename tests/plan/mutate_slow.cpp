// Random edits of a valid plan's text: whatever a file holds, it is read and judged without a fault, in bounded time,
// and what is read prints back as it was read.
#include <gtest/gtest.h>

#include "compiler/plan/text.h"
#include "tests/support/plan_mutator.h"
#include "tests/support/plan_samples.h"

namespace shardc {
namespace {

TEST(MutatedPlans, ManyAreReadAndJudgedInBoundedTime) {
  constexpr int NumMutants = 20'000;
  const std::string text =
      PrintPlan(CompileSample({"model.layers=1", "recompute.policy=\"full\"", "shard.reshard_after_forward=true"}));
  const MutantCounts counts = JudgeMutants(text, NumMutants, 2);
  RecordProperty("unread", counts.unread);
  RecordProperty("rejected", counts.rejected);
  RecordProperty("accepted", counts.accepted);
  RecordProperty("slowest_us", static_cast<int>(counts.slowest_s * 1e6));
  EXPECT_GT(counts.unread, NumMutants / 4);
  EXPECT_GT(counts.rejected, NumMutants / 8);
}

}  // namespace
}  // namespace shardc
