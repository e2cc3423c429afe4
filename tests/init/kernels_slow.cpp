// Many random rules: generated code and the evaluator leave the same bits. SHARDC_RULES says how many, SHARDC_SEED
// which: what a rule costs is its compilation, 10 ms, so 300 are taken, nightly 1,500, and another seed takes others.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/init/same_bits.h"
#include "tests/support/nightly.h"

namespace shardc {

TEST(KernelsSlow, AreTheEvaluatorOfManyRandomRules) {
  const auto number = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  RandomRule random(static_cast<unsigned>(number("SHARDC_SEED", 2)), 2);
  ExpectSameBitsOfRandomRules(random, number("SHARDC_RULES", 1'500 / static_cast<int>(Stride(5))));
}

}  // namespace shardc
