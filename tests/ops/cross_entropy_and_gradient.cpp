#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct FusedLossCase {
  int64_t rows = 0;
  int64_t vocabulary = 0;
  /// Every n-th target is masked; 0: none, 1: all.
  int64_t mask_every = 0;
  double spread = 1;
  double count = 1;
};

/// Rows in whole vectors and not; more of them, and longer ones, than a kernel keeps at once.
constexpr FusedLossCase FusedLossCases[] = {{1, 2, 0, 1, 1},      {51, 257, 0, 1, 51},  {51, 256, 4, 1, 38},
                                            {65, 10, 2, 1, 1000}, {15, 1000, 3, 20, 7}, {8, 31, 1, 1, 7},
                                            {300, 5, 3, 2, 200},  {2, 57353, 0, 1, 2},  {2, 112648, 2, 1, 1}};

/// The operands of a case, and the op on them.
struct FusedLoss {
  FusedLoss(KernelFixture& fixture, DType dtype, const FusedLossCase& test, bool adds)
      : logits(RandomNumbers(dtype, test.rows * test.vocabulary, 1, test.spread)),
        targets(RandomTokens(test.rows, 2, test.vocabulary)) {
    for (size_t i = 0; test.mask_every > 0 && i < targets.size(); i += static_cast<size_t>(test.mask_every)) {
      targets[i] = -1;
    }
    const ValueId onto = adds ? fixture.F64({2.5}) : fixture.Add(DType::F64, {1});
    op = {.logits = fixture.Floats(dtype, {test.rows, 1, test.vocabulary}, logits),
          .targets = fixture.I32({test.rows, 1}, targets),
          .count = fixture.F64({test.count}),
          .loss = fixture.Over(onto),
          .loss_onto = adds ? onto : ValueId{},
          .dlogits = {},
          .scratch = {},
          .head = {}};
    op.dlogits = fixture.Over(op.logits);
  }

  std::vector<double> logits;
  std::vector<int32_t> targets;
  op::CrossEntropyAndGradient op;
};

/// Calls body(fixture, dtype, test, adds) for each backend, element type and case; every other case adds.
template <class Body>
static auto ForFusedLosses(const Body& body) -> void {
  ForElementTypes([&](const Backend& backend, DType dtype) {
    bool adds = false;
    for (const FusedLossCase& test : FusedLossCases) {
      SCOPED_TRACE(fmt::format("N={} V={} masked 1/{} onto {}", test.rows, test.vocabulary, test.mask_every, adds));
      KernelFixture fixture(backend);
      body(fixture, dtype, test, adds);
      adds = !adds;
    }
  });
}

TEST(CrossEntropyAndGradient, EqualsLibTorchInF64) {
  ForFusedLosses([](KernelFixture& fixture, DType dtype, const FusedLossCase& test, bool adds) {
    const FusedLoss loss(fixture, dtype, test, adds);
    fixture.Run(loss.op);
    const CrossEntropyResult expected =
        TorchCrossEntropy(test.rows, test.vocabulary, test.count, loss.logits, loss.targets);
    ExpectClose(OpKind::CrossEntropy, "loss", fixture.At<double>(loss.op.loss), {expected.loss + (adds ? 2.5 : 0)});
    ExpectClose(OpKind::CrossEntropyBackward, "dlogits", fixture, loss.op.dlogits, expected.dlogits);
  });
}

// The kernels to compare with round the lse of the two ops alone.
TEST(CrossEntropyAndGradient, HasBitsOfParts) {
  ForFusedLosses([](KernelFixture& fixture, DType dtype, const FusedLossCase& test, bool adds) {
    if (fixture.plan().kernels == KernelSet::Reference) {
      return;
    }
    const FusedLoss fused(fixture, dtype, test, adds);
    fixture.Run(fused.op);
    const op::CrossEntropyAndGradient& op = FusedLoss(fixture, dtype, test, adds).op;
    const ValueId lse = fixture.Add(DType::F32, {test.rows, 1});
    fixture.Run(op::CrossEntropy{
        .logits = op.logits, .targets = op.targets, .loss = op.loss, .loss_onto = op.loss_onto, .lse = lse});
    fixture.Run(op::CrossEntropyBackward{
        .logits = op.logits, .targets = op.targets, .lse = lse, .count = op.count, .dlogits = op.dlogits});
    EXPECT_EQ(fixture.Numbers(fused.op.loss), fixture.Numbers(op.loss));
    EXPECT_EQ(fixture.Numbers(fused.op.dlogits), fixture.Numbers(op.dlogits));
  });
}

/// Returns the op on two rows of three columns.
static auto OpOfTwoRows(KernelFixture& fixture, DType dtype, const std::vector<double>& logits,
                        const std::vector<int32_t>& targets, double count) -> op::CrossEntropyAndGradient {
  op::CrossEntropyAndGradient op{.logits = fixture.Floats(dtype, {2, 1, 3}, logits),
                                 .targets = fixture.I32({2, 1}, targets),
                                 .count = fixture.F64({count}),
                                 .loss = fixture.Add(DType::F64, {1})};
  op.dlogits = fixture.Over(op.logits);
  return op;
}

TEST(CrossEntropyAndGradient, NamesTargetOutOfRange) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const Status status = fixture.TryRun(OpOfTwoRows(fixture, DType::F32, {1, 2, 3, 4, 5, 6}, {2, 3}, 2));
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "token id 3 at position 1 is outside the vocabulary of 3");
  });
}

TEST(CrossEntropyAndGradient, NanShowsWithTargetAlone) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const bool has_target : {false, true}) {
      KernelFixture fixture(backend);
      const op::CrossEntropyAndGradient op =
          OpOfTwoRows(fixture, dtype, {1, std::nan(""), 3, 4, 5, 6}, {has_target ? 0 : -1, 1}, 1);
      fixture.Run(op);
      EXPECT_EQ(std::isnan(fixture.At<double>(op.loss)[0]), has_target);
      const auto dlogits = fixture.Numbers(op.dlogits);
      EXPECT_EQ(std::isnan(dlogits[0]), has_target);
      EXPECT_EQ(std::isnan(dlogits[3]), false);
    }
  });
}

// The loss is there all the same.
TEST(CrossEntropyAndGradient, GradientIsZeroIfCountIs) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const op::CrossEntropyAndGradient op = OpOfTwoRows(fixture, dtype, {1, 1, 1, 1, 1, 1}, {0, 1}, 0);
    fixture.Run(op);
    EXPECT_NEAR(fixture.At<double>(op.loss)[0], 2 * std::log(3), 1e-6);
    EXPECT_EQ(fixture.Numbers(op.dlogits), std::vector<double>(6));
  });
}

}  // namespace shardc
