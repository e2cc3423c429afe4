#include <gtest/gtest.h>

#include "tests/ops/attention_case.h"
#include "tests/ops/tolerance.h"

namespace shardc {

static auto RunAttention(KernelFixture& fixture, const AttentionCase& test) -> op::Attention {
  const op::Attention body{.q = fixture.Floats(test.dtype, test.q_dims, test.q),
                           .k = fixture.Floats(test.dtype, test.k_dims, test.k),
                           .v = fixture.Floats(test.dtype, test.k_dims, test.v),
                           .starts = test.StartsIn(fixture),
                           .y = fixture.Add(test.dtype, test.q_dims),
                           .lse = fixture.Add(DType::F32, {test.shape.batch, test.shape.heads, test.shape.sequence}),
                           .scratch = {},
                           .head_dim = test.shape.head_dim};
  fixture.Run(body);
  return body;
}

static auto ExpectAttention(const Backend& backend, const AttentionCase& test) -> void {
  KernelFixture fixture(backend);
  const op::Attention body = RunAttention(fixture, test);
  ExpectClose(OpKind::Attention, "y", fixture, body.y, test.expected.y);
  ExpectClose(OpKind::Attention, "lse", fixture, body.lse, test.expected.lse);
}

TEST(Attention, EqualsLibTorchInF64) { ForAttentionCases(false, ExpectAttention); }

TEST(Attention, OfDocumentsEqualsLibTorch) { ForAttentionCases(true, ExpectAttention); }

TEST(Attention, ZeroStartsChangeNoBit) { ExpectBitsOfNoStarts(RunAttention, &op::Attention::y, &op::Attention::lse); }

TEST(Attention, DocumentHasBitsOfItAlone) {
  ExpectBitsOfDocumentsAlone(RunAttention, &op::Attention::y, &op::Attention::lse);
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
  ExpectBitsOfAnyThreads(RunAttention, &op::Attention::y, &op::Attention::lse);
}

}  // namespace shardc
