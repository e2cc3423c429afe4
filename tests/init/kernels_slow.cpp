// Thousands of random rules: generated code and the evaluator leave the same bits. SHARDC_RULES says how many.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/init/same_bits.h"

namespace shardc {

TEST(KernelsSlow, AreTheEvaluatorOfThousandsOfRandomRules) {
  const char* const rules = std::getenv("SHARDC_RULES");
  RandomRule random(2, 2);
  ExpectSameBitsOfRandomRules(random, rules == nullptr ? 5'000 : std::atoi(rules));
}

}  // namespace shardc
