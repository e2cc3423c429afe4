#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct LossCase {
  int64_t sequence;
  int64_t batch;
  int64_t vocabulary;
  /// Every n-th target is masked; 0: none, 1: all.
  int64_t mask_every;
  double spread;
};

constexpr LossCase LossCases[] = {{1, 1, 2, 0, 1},   {17, 3, 257, 0, 1},  {17, 3, 257, 4, 1},
                                  {65, 1, 10, 2, 1}, {5, 3, 1000, 3, 20}, {4, 2, 31, 1, 1}};

TEST(CrossEntropy, EqualsLibTorchInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const LossCase& test : LossCases) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(fmt::format("S={} B={} V={} masked 1/{} onto {}", test.sequence, test.batch, test.vocabulary,
                                 test.mask_every, adds));
        KernelFixture fixture(backend);
        const int64_t rows = test.sequence * test.batch;
        const auto logits = RandomNumbers(dtype, rows * test.vocabulary, 1, test.spread);
        auto targets = RandomTokens(rows, 2, test.vocabulary);
        for (int64_t i = 0; test.mask_every > 0 && i < rows; i += test.mask_every) {
          targets[static_cast<size_t>(i)] = -1;
        }
        const CrossEntropyResult expected = TorchCrossEntropy(rows, test.vocabulary, 1, logits, targets);
        const ValueId onto = adds ? fixture.F64({2.5}) : fixture.Add(DType::F64, {1});
        const ValueId loss = fixture.Over(onto);
        const ValueId lse = fixture.Add(DType::F32, {test.sequence, test.batch});
        fixture.Run(
            op::CrossEntropy{.logits = fixture.Floats(dtype, {test.sequence, test.batch, test.vocabulary}, logits),
                             .targets = fixture.I32({test.sequence, test.batch}, targets),
                             .loss = loss,
                             .loss_onto = adds ? onto : ValueId{},
                             .lse = lse});
        ExpectClose(OpKind::CrossEntropy, "loss", fixture.At<double>(loss), {expected.loss + (adds ? 2.5 : 0)});
        ExpectClose(OpKind::CrossEntropy, "lse", fixture.At<float>(lse), expected.lse);
      }
    }
  });
}

TEST(CrossEntropy, NamesTheTargetOutOfRange) {
  ForBackends([](const Backend& backend) {
    KernelFixture fixture(backend);
    const Status status = fixture.TryRun(op::CrossEntropy{.logits = fixture.F32({2, 1, 3}, {1, 2, 3, 4, 5, 6}),
                                                          .targets = fixture.I32({2, 1}, {2, 3}),
                                                          .loss = fixture.Add(DType::F64, {1}),
                                                          .loss_onto = {},
                                                          .lse = fixture.Add(DType::F32, {2, 1})});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "token id 3 at position 1 is outside the vocabulary of 3");
  });
}

// A logit that is not a number is to be seen in the loss, never lost in a comparison.
TEST(CrossEntropy, NanShows) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const ValueId loss = fixture.Add(DType::F64, {1});
    fixture.Run(op::CrossEntropy{.logits = fixture.Floats(dtype, {1, 1, 3}, {1, std::nan(""), 3}),
                                 .targets = fixture.I32({1, 1}, {0}),
                                 .loss = loss,
                                 .loss_onto = {},
                                 .lse = fixture.Add(DType::F32, {1, 1})});
    EXPECT_TRUE(std::isnan(fixture.At<double>(loss)[0]));
  });
}

}  // namespace shardc
