// A schedule that is evaluated step after step has the values and the faults of one that is evaluated from the
// beginning.
#include "compiler/expr/step_evaluator.h"

#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

namespace shardc {
namespace {

TEST(StepEvaluator, IsTheEvaluator) {
  const std::vector<std::string> texts{
      "0.9 - 0.4 * step / steps",
      "warmup(7) * cosine(7, 0.1)",
      "wsd(3, 10, 0)",
      "3 / (step - 9)",
      "if step < 5 then 1 / steps else log(step - 7)",
      "let a = steps / 3 in let b = a - step in if b > 0 then sqrt(b) else b ^ 2",
      "2 + 3 * pi",
      "1 / 0",
      "steps",
      "step % 4 + (if step == 3 or step > 1e3 then 1 else 0)",
      "linear(40, 0)",
      "exp(step ^ 3)",
  };
  constexpr int64_t Steps = 30;
  int num_faults = 0;
  for (const std::string& text : texts) {
    const auto parsed = ParseExpr(text, ExprKind::Schedule);
    ASSERT_TRUE(parsed.ok()) << text;
    StepEvaluator evaluator(parsed.value, Steps);
    EXPECT_EQ(evaluator.is_constant(), !UsesVariable(parsed.value, "step")) << text;
    // Forward, and back over what was a fault.
    for (const int64_t step : {0, 1, 2, 3, 8, 9, 10, 29, 9, 0, 5, 7, 1}) {
      const auto expected =
          EvaluateNumber(parsed.value, {{"step", static_cast<double>(step)}, {"steps", static_cast<double>(Steps)}});
      const auto actual = evaluator.At(step);
      ASSERT_EQ(actual.ok(), expected.ok()) << text << " at " << step;
      if (!expected.ok()) {
        ++num_faults;
        EXPECT_EQ(actual.errors.front().message, expected.errors.front().message) << text;
        EXPECT_EQ(actual.errors.front().column, expected.errors.front().column) << text;
      } else {
        EXPECT_EQ(std::bit_cast<uint64_t>(actual.value), std::bit_cast<uint64_t>(expected.value)) << text;
      }
    }
  }
  EXPECT_GT(num_faults, 30);
}

}  // namespace
}  // namespace shardc
