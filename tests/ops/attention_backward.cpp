#include <gtest/gtest.h>

#include "tests/ops/attention_case.h"
#include "tests/ops/tolerance.h"

namespace shardc {

static auto RunBackward(KernelFixture& fixture, const AttentionCase& test) -> op::AttentionBackward {
  const op::AttentionBackward body{
      .dy = fixture.Floats(test.dtype, test.q_dims, test.dy),
      .q = fixture.Floats(test.dtype, test.q_dims, test.q),
      .k = fixture.Floats(test.dtype, test.k_dims, test.k),
      .v = fixture.Floats(test.dtype, test.k_dims, test.v),
      .y = fixture.Floats(test.dtype, test.q_dims, RoundedTo(test.dtype, test.expected.y)),
      .lse = fixture.F32({test.shape.batch, test.shape.heads, test.shape.sequence}, test.expected.lse),
      .starts = test.StartsIn(fixture),
      .dq = fixture.Add(test.dtype, test.q_dims),
      .dk = fixture.Add(test.dtype, test.k_dims),
      .dv = fixture.Add(test.dtype, test.k_dims),
      .scratch = {},
      .head_dim = test.shape.head_dim};
  fixture.Run(body);
  return body;
}

/// Runs it, and compares the gradients.
static auto ExpectGradients(KernelFixture& fixture, const AttentionCase& test) -> void {
  const op::AttentionBackward body = RunBackward(fixture, test);
  ExpectClose(OpKind::AttentionBackward, "dq", fixture, body.dq, test.expected.dq);
  ExpectClose(OpKind::AttentionBackward, "dk", fixture, body.dk, test.expected.dk);
  ExpectClose(OpKind::AttentionBackward, "dv", fixture, body.dv, test.expected.dv);
}

TEST(AttentionBackward, EqualsLibTorchInF64) {
  ForAttentionCases(false, [](const Backend& backend, const AttentionCase& test) {
    KernelFixture fixture(backend);
    ExpectGradients(fixture, test);
  });
}

TEST(AttentionBackward, OfDocumentsEqualsLibTorch) {
  ForAttentionCases(true, [](const Backend& backend, const AttentionCase& test) {
    KernelFixture fixture(backend);
    ExpectGradients(fixture, test);
  });
}

TEST(AttentionBackward, ZeroStartsChangeNoBit) {
  using Op = op::AttentionBackward;
  ExpectBitsOfNoStarts(RunBackward, &Op::dq, &Op::dk, &Op::dv);
}

TEST(AttentionBackward, DocumentHasBitsOfItAlone) {
  using Op = op::AttentionBackward;
  ExpectBitsOfDocumentsAlone(RunBackward, &Op::dq, &Op::dk, &Op::dv);
}

// A GPU then takes one kv head of one sequence at a time.
TEST(AttentionBackward, RunsInTheLeastWorkspace) {
  const AttentionCase test({.sequence = 200, .batch = 3, .heads = 6, .kv_heads = 3, .head_dim = 32}, 1, DType::BF16);
  ForBackends([&](const Backend& backend) {
    KernelFixture fixture(backend);
    fixture.mutable_plan().run.attention_workspace = 0;
    ExpectGradients(fixture, test);
  });
}

// Two runs on a GPU may then give other bits.
TEST(AttentionBackward, RunsInAnyOrder) {
  for (const AttentionShape& shape :
       {AttentionShape{.sequence = 200, .batch = 5, .heads = 6, .kv_heads = 3, .head_dim = 32},
        AttentionShape{.sequence = 128, .batch = 2, .heads = 4, .kv_heads = 4, .head_dim = 128}}) {
    const AttentionCase test(shape, 1, DType::BF16);
    ForBackends([&](const Backend& backend) {
      SCOPED_TRACE(ToText(shape));
      KernelFixture fixture(backend);
      fixture.mutable_plan().run.deterministic = false;
      ExpectGradients(fixture, test);
    });
  }
}

TEST(AttentionBackward, BitsDoNotDependOnThreads) {
  using Op = op::AttentionBackward;
  ExpectBitsOfAnyThreads(RunBackward, &Op::dq, &Op::dk, &Op::dv);
}

}  // namespace shardc
