#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/attention_case.h"
#include "tests/ops/tolerance.h"

namespace shardc {

static auto RunAttention(KernelFixture& fixture, const AttentionCase& test) -> op::Attention {
  const op::Attention body{.q = fixture.F32(test.q_dims, test.q),
                           .k = fixture.F32(test.k_dims, test.k),
                           .v = fixture.F32(test.k_dims, test.v),
                           .y = fixture.Add(DType::F32, test.q_dims),
                           .lse = fixture.Add(DType::F32, {test.shape.batch, test.shape.heads, test.shape.sequence}),
                           .scratch = {},
                           .head_dim = test.shape.head_dim};
  fixture.Run(body);
  return body;
}

TEST(Attention, EqualsLibTorchInF64) {
  for (const AttentionShape& shape : AttentionShapes) {
    SCOPED_TRACE(ToText(shape));
    const AttentionCase test(shape);
    KernelFixture fixture;
    const op::Attention body = RunAttention(fixture, test);
    ExpectClose(OpKind::Attention, "y", fixture.At<float>(body.y), test.expected.y);
    ExpectClose(OpKind::Attention, "lse", fixture.At<float>(body.lse), test.expected.lse);
  }
}

// Scores of some thousands: a softmax that does not follow the maximum overflows.
TEST(Attention, GreatScoresStayFinite) {
  const AttentionCase test({.sequence = 130, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 16}, 40);
  KernelFixture fixture;
  const op::Attention body = RunAttention(fixture, test);
  const auto y = fixture.At<float>(body.y);
  for (size_t i = 0; i < y.size(); ++i) {
    ASSERT_NEAR(y[i], test.expected.y[i], 1e-2) << i;
  }
}

TEST(Attention, BitsDoNotDependOnThreads) {
  const AttentionCase test({.sequence = 150, .batch = 5, .heads = 4, .kv_heads = 2, .head_dim = 32});
  KernelFixture one;
  const op::Attention with_one = RunAttention(one, test);
  SetComputeThreads(3);
  KernelFixture three;
  const op::Attention with_three = RunAttention(three, test);
  SetComputeThreads(1);
  EXPECT_TRUE(std::ranges::equal(one.At<float>(with_one.y), three.At<float>(with_three.y)));
  EXPECT_TRUE(std::ranges::equal(one.At<float>(with_one.lse), three.At<float>(with_three.lse)));
}

}  // namespace shardc
