#include <gtest/gtest.h>

#include "tests/ops/attention_case.h"
#include "tests/ops/tolerance.h"

namespace shardc {

static auto RunAttention(KernelFixture& fixture, const AttentionCase& test) -> op::Attention {
  const op::Attention body{.q = fixture.Floats(test.dtype, test.q_dims, test.q),
                           .k = fixture.Floats(test.dtype, test.k_dims, test.k),
                           .v = fixture.Floats(test.dtype, test.k_dims, test.v),
                           .y = fixture.Add(test.dtype, test.q_dims),
                           .lse = fixture.Add(DType::F32, {test.shape.batch, test.shape.heads, test.shape.sequence}),
                           .scratch = {},
                           .head_dim = test.shape.head_dim};
  fixture.Run(body);
  return body;
}

TEST(Attention, EqualsLibTorchInF64) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const AttentionShape& shape : AttentionShapes) {
      const AttentionCase test(shape, 1, dtype);
      ForBackends([&](const Backend& backend) {
        SCOPED_TRACE(fmt::format("{} {}", ToText(dtype), ToText(shape)));
        KernelFixture fixture(backend);
        const op::Attention body = RunAttention(fixture, test);
        ExpectClose(OpKind::Attention, "y", fixture, body.y, test.expected.y);
        ExpectClose(OpKind::Attention, "lse", fixture, body.lse, test.expected.lse);
      });
    }
  }
}

// Scores of some thousands: a softmax that does not follow the maximum overflows.
TEST(Attention, GreatScoresStayFinite) {
  const AttentionCase test({.sequence = 330, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 16}, 40);
  ForBackends([&](const Backend& backend) {
    KernelFixture fixture(backend);
    const op::Attention body = RunAttention(fixture, test);
    const auto y = fixture.At<float>(body.y);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], test.expected.y[i], 1e-2) << i;
    }
  });
}

TEST(Attention, BitsDoNotDependOnThreads) {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const AttentionCase test({.sequence = 150, .batch = 5, .heads = 8, .kv_heads = 4, .head_dim = 32}, 1, dtype);
    ForBackends([&](const Backend& backend) {
      if (backend.kernels != KernelSet::Fused) {
        return;
      }
      KernelFixture one(backend);
      const op::Attention with_one = RunAttention(one, test);
      SetComputeThreads(3);
      KernelFixture three(backend);
      const op::Attention with_three = RunAttention(three, test);
      SetComputeThreads(1);
      EXPECT_EQ(one.Numbers(with_one.y), three.Numbers(with_three.y));
      EXPECT_EQ(one.Numbers(with_one.lse), three.Numbers(with_three.lse));
    });
  }
}

}  // namespace shardc
