#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/vocab_case.h"

namespace shardc {

/// What log_sum_exp gives on each rank, one after another.
static auto PartsOf(const VocabCase& test, int64_t rows, const Numbers& logits) -> Numbers {
  Numbers parts;
  for (int64_t rank = 0; rank < test.tp; ++rank) {
    constexpr double None = -std::numeric_limits<double>::infinity();
    const Numbers part = TorchLogSumExp(rows, test.capacity(), test.Columns(logits, rank, None));
    parts.insert(parts.end(), part.begin(), part.end());
  }
  return parts;
}

// The targets of other ranks are for this rank's loss as if they were masked.
TEST(ShardedCrossEntropy, EqualsLibTorchInF64) {
  ForVocabRanks([](const Backend& backend, DType dtype, const VocabCase& test, int64_t rank) {
    for (const auto& [sequence, batch, mask_every, spread] :
         {std::array{1, 1, 0, 1}, {17, 3, 0, 1}, {17, 3, 4, 3}, {65, 1, 2, 20}, {4, 2, 1, 1}}) {
      for (const bool adds : {false, true}) {
        SCOPED_TRACE(fmt::format("S={} B={} masked 1/{} onto {}", sequence, batch, mask_every, adds));
        const int64_t rows = sequence * batch;
        const auto logits = RandomNumbers(dtype, rows * test.vocabulary, 1, spread);
        auto targets = RandomTokens(rows, 2, test.vocabulary);
        for (int64_t i = 0; mask_every > 0 && i < rows; i += mask_every) {
          targets[static_cast<size_t>(i)] = -1;
        }
        const auto expected = TorchCrossEntropy(rows, test.vocabulary, 1, logits, test.Own(targets, rank));
        VocabFixture fixture(backend, test, rank);
        const ValueId onto = adds ? fixture.F64({2.5}) : fixture.Add(DType::F64, {1});
        const ValueId loss = fixture.Over(onto);
        const ValueId lse = fixture.Add(DType::F32, {sequence, batch});
        fixture.Run(op::ShardedCrossEntropy{
            .logits = fixture.Floats(dtype, {sequence, batch, test.capacity()}, test.Columns(logits, rank, Unread)),
            .targets = fixture.I32({sequence, batch}, targets),
            .parts = fixture.F32({test.tp, sequence, batch}, PartsOf(test, rows, logits)),
            .loss = loss,
            .loss_onto = adds ? onto : ValueId{},
            .lse = lse,
            .vocab_axes = VocabAxes});
        ExpectClose(OpKind::ShardedCrossEntropy, "loss", fixture.At<double>(loss), {expected.loss + (adds ? 2.5 : 0)});
        ExpectClose(OpKind::ShardedCrossEntropy, "lse", fixture.At<float>(lse), expected.lse);
      }
    }
  });
}

static auto RunOnRank(VocabFixture& fixture, const VocabCase& test, DType dtype, const Numbers& logits,
                      const Numbers& parts, const std::vector<int32_t>& targets, ValueId loss) -> Status {
  const auto rows = static_cast<int64_t>(targets.size());
  return fixture.TryRun(op::ShardedCrossEntropy{.logits = fixture.Floats(dtype, {rows, 1, test.capacity()}, logits),
                                                .targets = fixture.I32({rows, 1}, targets),
                                                .parts = fixture.F32({test.tp, rows, 1}, parts),
                                                .loss = loss,
                                                .loss_onto = {},
                                                .lse = fixture.Add(DType::F32, {rows, 1}),
                                                .vocab_axes = VocabAxes});
}

// Ids in the padding after the vocabulary are none.
TEST(ShardedCrossEntropy, NamesTheTargetOutOfRange) {
  constexpr VocabCase Test{2, 5};
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (const int64_t rank : {0, 1}) {
      for (const int32_t bad : {-2, 5, 6}) {
        VocabFixture fixture(backend, Test, rank);
        const Status status =
            RunOnRank(fixture, Test, dtype, {1, 2, 3, 4, 5, 6}, {1, 2, 3, 4}, {4, bad}, fixture.Add(DType::F64, {1}));
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().message, fmt::format("token id {} at position 1 is outside the vocabulary of 5", bad));
      }
    }
  });
}

// One that is not a number shows where the row has a target, whichever rank it comes from, and nowhere else.
TEST(ShardedCrossEntropy, NanShows) {
  constexpr VocabCase Test{3, 6};
  const double nan = std::nan("");
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (size_t from = 0; from < 3; ++from) {
      Numbers parts{1, 1, 2, 2, 3, 3};
      parts[2 * from] = nan;
      VocabFixture fixture(backend, Test, 1);
      const ValueId loss = fixture.Add(DType::F64, {1});
      ASSERT_TRUE(RunOnRank(fixture, Test, dtype, {1, 2, 3, 4}, parts, {2, -1}, loss).ok());
      EXPECT_TRUE(std::isnan(fixture.At<double>(loss)[0])) << "part of rank " << from;
    }
    // In a masked row, and in one whose target another rank has.
    VocabFixture fixture(backend, Test, 1);
    const ValueId loss = fixture.Add(DType::F64, {1});
    ASSERT_TRUE(
        RunOnRank(fixture, Test, dtype, {nan, nan, nan, nan, 3, 4}, {1, 1, 1, nan, nan, 2, 3, 3, 3}, {-1, 5, 3}, loss)
            .ok());
    EXPECT_FALSE(std::isnan(fixture.At<double>(loss)[0]));
  });
}

}  // namespace shardc
