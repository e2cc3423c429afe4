// Thousands of random rules: generated code and the evaluator leave the same bits.
#include <gtest/gtest.h>

#include "tests/init/same_bits.h"

namespace shardc {

TEST(KernelsSlow, AreTheEvaluatorOf5000RandomRules) {
  RandomRule random(2, 2);
  ExpectSameBitsOfRandomRules(random, 5000);
}

}  // namespace shardc
