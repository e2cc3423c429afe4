// Thousands of random rules: generated code and the evaluator leave the same bits. SHARDC_RULES says how many,
// SHARDC_SEED which.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/init/same_bits.h"

namespace shardc {

TEST(KernelsSlow, AreTheEvaluatorOfThousandsOfRandomRules) {
  const auto number = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  RandomRule random(static_cast<unsigned>(number("SHARDC_SEED", 2)), 2);
  ExpectSameBitsOfRandomRules(random, number("SHARDC_RULES", 5'000));
}

}  // namespace shardc
