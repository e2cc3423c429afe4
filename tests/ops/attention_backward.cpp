#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/attention_case.h"
#include "tests/ops/tolerance.h"

namespace shardc {

static auto RunBackward(KernelFixture& fixture, const AttentionCase& test) -> op::AttentionBackward {
  const op::AttentionBackward body{
      .dy = fixture.F32(test.q_dims, test.dy),
      .q = fixture.F32(test.q_dims, test.q),
      .k = fixture.F32(test.k_dims, test.k),
      .v = fixture.F32(test.k_dims, test.v),
      .y = fixture.F32(test.q_dims, test.expected.y),
      .lse = fixture.F32({test.shape.batch, test.shape.heads, test.shape.sequence}, test.expected.lse),
      .dq = fixture.Add(DType::F32, test.q_dims),
      .dk = fixture.Add(DType::F32, test.k_dims),
      .dv = fixture.Add(DType::F32, test.k_dims),
      .scratch = {},
      .head_dim = test.shape.head_dim};
  fixture.Run(body);
  return body;
}

TEST(AttentionBackward, EqualsLibTorchInF64) {
  for (const AttentionShape& shape : AttentionShapes) {
    SCOPED_TRACE(ToText(shape));
    const AttentionCase test(shape);
    KernelFixture fixture;
    const op::AttentionBackward body = RunBackward(fixture, test);
    ExpectClose(OpKind::AttentionBackward, "dq", fixture.At<float>(body.dq), test.expected.dq);
    ExpectClose(OpKind::AttentionBackward, "dk", fixture.At<float>(body.dk), test.expected.dk);
    ExpectClose(OpKind::AttentionBackward, "dv", fixture.At<float>(body.dv), test.expected.dv);
  }
}

TEST(AttentionBackward, BitsDoNotDependOnThreads) {
  const AttentionCase test({.sequence = 150, .batch = 5, .heads = 8, .kv_heads = 4, .head_dim = 32});
  KernelFixture one;
  const op::AttentionBackward with_one = RunBackward(one, test);
  SetComputeThreads(3);
  KernelFixture three;
  const op::AttentionBackward with_three = RunBackward(three, test);
  SetComputeThreads(1);
  EXPECT_TRUE(std::ranges::equal(one.At<float>(with_one.dq), three.At<float>(with_three.dq)));
  EXPECT_TRUE(std::ranges::equal(one.At<float>(with_one.dk), three.At<float>(with_three.dk)));
  EXPECT_TRUE(std::ranges::equal(one.At<float>(with_one.dv), three.At<float>(with_three.dv)));
}

}  // namespace shardc
