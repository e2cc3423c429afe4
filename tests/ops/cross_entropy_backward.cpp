#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/vocab_case.h"

namespace shardc {

/// Gives dlogits.
static auto RunBackward(KernelFixture& fixture, DType dtype, int64_t rows, int64_t vocabulary, const Numbers& logits,
                        const std::vector<int32_t>& targets, const Numbers& lse, double count) -> ValueId {
  const ValueId value = fixture.Floats(dtype, {rows, 1, vocabulary}, logits);
  const ValueId dlogits = fixture.Over(value);
  fixture.Run(op::CrossEntropyBackward{.logits = value,
                                       .targets = fixture.I32({rows, 1}, targets),
                                       .lse = fixture.F32({rows, 1}, lse),
                                       .count = fixture.F64({count}),
                                       .dlogits = dlogits});
  return dlogits;
}

TEST(CrossEntropyBackward, EqualsLibTorchInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [rows, vocabulary, mask_every, count] :
         {std::array{1, 2, 0, 1}, {51, 257, 0, 51}, {51, 257, 4, 38}, {65, 10, 2, 1000}, {8, 31, 1, 7}}) {
      SCOPED_TRACE(fmt::format("N={} V={} masked 1/{}", rows, vocabulary, mask_every));
      const auto logits = RandomNumbers(dtype, rows * vocabulary, 1, 2);
      auto targets = RandomTokens(rows, 2, vocabulary);
      for (int i = 0; mask_every > 0 && i < rows; i += mask_every) {
        targets[static_cast<size_t>(i)] = -1;
      }
      const CrossEntropyResult expected = TorchCrossEntropy(rows, vocabulary, count, logits, targets);
      KernelFixture fixture(backend);
      const ValueId dlogits = RunBackward(fixture, dtype, rows, vocabulary, logits, targets, expected.lse, count);
      ExpectClose(OpKind::CrossEntropyBackward, "dlogits", fixture, dlogits, expected.dlogits);
    }
  });
}

TEST(CrossEntropyBackward, MaskedRowsAreZero) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const ValueId dlogits =
        RunBackward(fixture, dtype, 4, 9, RandomNumbers(4 * 9, 1), {-1, 3, -1, -1}, {3, 3, 3, 3}, 1);
    EXPECT_EQ(std::ranges::count(fixture.Numbers(dlogits), 0.0), 27);
  });
}

TEST(CrossEntropyBackward, NoValidTargetAnywhereIsZero) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    KernelFixture fixture(backend);
    const ValueId dlogits =
        RunBackward(fixture, dtype, 4, 9, RandomNumbers(4 * 9, 1), {-1, -1, -1, -1}, {3, 3, 3, 3}, 0);
    EXPECT_EQ(std::ranges::count(fixture.Numbers(dlogits), 0.0), 36);
  });
}

// Side by side the ranks' columns are the whole gradient; those past the end of the vocabulary are 0.
TEST(CrossEntropyBackward, GivesTheColumnsOfThisRank) {
  ForVocabRanks([](const Backend& backend, DType dtype, const VocabCase& test, int64_t rank) {
    constexpr int64_t Rows = 51;
    for (const int64_t count : {51, 1000, 0}) {
      const auto logits = RandomNumbers(dtype, Rows * test.vocabulary, 1, 2);
      auto targets = RandomTokens(Rows, 2, test.vocabulary);
      for (size_t i = 0; i < targets.size(); i += 4) {
        targets[i] = -1;
      }
      const CrossEntropyResult whole =
          TorchCrossEntropy(Rows, test.vocabulary, static_cast<double>(std::max<int64_t>(count, 1)), logits, targets);
      std::vector<double> expected = test.Columns(whole.dlogits, rank, 0);
      if (count == 0) {
        std::ranges::fill(expected, 0.0);
      }
      VocabFixture fixture(backend, test, rank);
      const ValueId value = fixture.Floats(dtype, {Rows, 1, test.capacity()}, test.Columns(logits, rank, Unread));
      const ValueId dlogits = fixture.Over(value);
      fixture.Run(op::CrossEntropyBackward{.logits = value,
                                           .targets = fixture.I32({Rows, 1}, targets),
                                           .lse = fixture.F32({Rows, 1}, whole.lse),
                                           .count = fixture.F64({static_cast<double>(count)}),
                                           .dlogits = dlogits,
                                           .vocab_axes = VocabAxes});
      ExpectClose(OpKind::CrossEntropyBackward, "dlogits", fixture, dlogits, expected);
      const auto numbers = fixture.Numbers(dlogits);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const int64_t id = rank * test.capacity() + static_cast<int64_t>(i) % test.capacity();
        EXPECT_TRUE(test.Has(rank, id) || numbers[i] == 0) << i;
      }
    }
  });
}

}  // namespace shardc
