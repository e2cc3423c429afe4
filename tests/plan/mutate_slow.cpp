// Random edits of a valid plan's text: any text is read and judged without a fault, in bounded time, and what is read
// prints back as it was read.
#include <gtest/gtest.h>

#include "tests/support/nightly.h"
#include "tests/support/plan_mutator.h"

namespace shardc {

TEST(MutatedPlans, ManyAreReadAndJudgedInBoundedTime) { JudgeMutantsOfSample(20'000 / static_cast<int>(Stride(4)), 2); }

}  // namespace shardc
