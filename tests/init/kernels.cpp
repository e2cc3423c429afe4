// Generated code and the evaluator that goes through a program for one element leave the same bits.
#include <gtest/gtest.h>

#include "compiler/expr/jit/element_jit.h"
#include "tests/init/same_bits.h"

namespace shardc {
namespace {

TEST(Kernels, AreTheEvaluator) {
  const auto kernels = SharedInitKernels();
  for (const char* text : {
           "normal(0, 0.02)",
           "normal(index(0), 1 + index(1))",
           "trunc_normal(0, 1, -2, 2)",
           "trunc_normal(0, 1, -0.5, 6)",
           "trunc_normal(0, 1, 1, 3)",
           "trunc_normal(0, 1, -5, -2.5)",
           "trunc_normal(index(0) / 8 - 1, 1, -1, 1.5)",
           "uniform(-index(1) - 1, index(0))",
           "copy('vector', index(1))",
           "copy('matrix')",
           "copy('matrix', index(0), 36 - index(1))",
           "copy('copied')",
           "copy('copied', (index(0) + 5) % 24, index(1)) + copy('vector', index(1))",
           "copy('bfloat16', index(1), index(0))",
           "normal(0, 1) / row_norm(normal(0, 1))",
           "let x = copy('copied') in x / row_norm(x)",
           "if index(1) < 3 or normal(0, 1) > 1 then 0 else normal(0, 1)",
           "if index(0) == index(1) then 1 else 0",
           "seed('loaded')",
           "seed('loaded', index(0), 36 - index(1))",
           "seed('turned', index(1), index(0)) - seed('row', index(1))",
           "copy('of_loaded')",
           "copy('of_loaded', index(0), (index(1) * 5) % 37) * normal(0, 1)",
           "let x = seed('loaded') in x / row_norm(x)",
           "let x = copy('of_loaded', 23 - index(0), index(1)) in x / row_norm(x + seed('turned', index(1), index(0)))",
           "if index(0) < 20 then seed('loaded', index(0) + 4, index(1)) else normal(0, 1)",
           "seed('loaded', index(0) + 1, index(1))",
           "if seed('row', index(1)) > 0 then sqrt(seed('row', index(1))) else -1",
           "sqrt(seed('row', index(1)))",
           "copy('matrix', if seed('loaded') > 0 then 3 else 4, index(1))",
           "seed('row', floor(uniform(0, 37)))",
           "log(uniform(0, 16))",
           "1 / index(0)",
           "if index(0) > 0 then 1 / index(0) else 2",
           "copy('vector', index(1) + 1)",
           "copy('constant', index(1) + 1)",
           "copy('constant', index(1))",
           "if index(1) < 36 then copy('vector', index(1) + 1) else none()",
           "500000 ^ (-2 * index(1) / 64)",
           "sin(index(0)) + cos(index(1)) * tanh(normal(0, 1)) + exp(-index(0)) + erf(normal(0, 1))",
           "erfinv(uniform(-1, 1)) + sqrt(index(0)) + floor(normal(0, 9)) + ceil(normal(0, 9)) % 7",
           "max(normal(0, 1), min(0.5, uniform(0, 1))) + pow(uniform(0, 2), normal(0, 3))",
       }) {
    ExpectSameBits(text);
  }
}

TEST(Kernels, AreTheEvaluatorOfRandomRules) {
  RandomRule random(1, 3);
  ExpectSameBitsOfRandomRules(random, 60);
}

// Numbers are no part of a kernel: one serves all layers.
TEST(Kernels, ServeAllRulesOfOneForm) {
  ElementJit jit;
  const auto kernel = [&](const char* text) {
    return jit.Kernel(MakeElementProgram(VectorOf(text, 1, "w"), NoOthers).value);
  };
  const ElementKernel first = kernel("normal(0, 0.02)");
  EXPECT_EQ(kernel("normal(1, 3)"), first);
  EXPECT_EQ(jit.num_kernels(), 1);
  EXPECT_NE(kernel("uniform(0, 1)"), first);
  EXPECT_NE(kernel("trunc_normal(0, 1, -2, 2)"), kernel("trunc_normal(0, 1, 1, 2)"));
  EXPECT_EQ(jit.num_kernels(), 4);
}

TEST(Kernels, NameTheElementWithoutAValue) {
  std::vector<float> values(Rows * Columns);
  const ElementSource matrix = VectorOf("1 / (index(0) * 37 + index(1) - 100)", 1, "w", {Rows, Columns});
  EXPECT_TRUE(InitialValues(matrix, NoOthers).Fill({0, 100}, values.data()).ok());
  EXPECT_TRUE(InitialValues(matrix, NoOthers).Fill({101, 500}, values.data()).ok());
  const Status status = InitialValues(matrix, NoOthers).Fill({0, 500}, values.data());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "the init rule `1 / (index(0) * 37 + index(1) - 100)` has no value at element [2, 26]");
}

}  // namespace
}  // namespace shardc
