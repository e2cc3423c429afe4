#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/vocab_case.h"

namespace shardc {

TEST(Embedding, CopiesRows) {
  ForResidualTypes([](const Backend& backend, DType dtype, DType residual) {
    for (const auto& [sequence, batch, hidden, vocabulary] :
         {std::array{1, 1, 1, 2}, {17, 3, 10, 257}, {65, 1, 33, 5}, {64, 2, 700, 19}}) {
      KernelFixture fixture(backend);
      const auto tokens = RandomTokens(sequence * batch, 1, vocabulary);
      const auto weight = RandomNumbers(dtype, vocabulary * hidden, 2);
      std::vector<double> expected;
      for (const int32_t token : tokens) {
        expected.insert(expected.end(), weight.begin() + token * hidden, weight.begin() + (token + 1) * hidden);
      }
      const ValueId y = fixture.Add(residual, {sequence, batch, hidden});
      fixture.Run(op::Embedding{.tokens = fixture.I32({sequence, batch}, tokens),
                                .weight = fixture.Floats(dtype, {vocabulary, hidden}, weight),
                                .y = y});
      EXPECT_EQ(fixture.Numbers(y), expected);
    }
  });
}

// The ranks' parts, of which all but one are 0, sum to the whole.
TEST(Embedding, CopiesTheRowsOfThisRank) {
  ForVocabRanks([](const Backend& backend, DType dtype, const VocabCase& test, int64_t rank) {
    for (const int64_t hidden : {1, 10, 33}) {
      const auto tokens = RandomTokens(51, 1, test.vocabulary);
      const auto weight = RandomNumbers(dtype, test.vocabulary * hidden, 2);
      std::vector<double> expected;
      for (const int32_t token : tokens) {
        for (int64_t h = 0; h < hidden; ++h) {
          expected.push_back(test.Has(rank, token) ? weight[static_cast<size_t>(token * hidden + h)] : 0);
        }
      }
      for (const DType residual : {dtype, DType::F32}) {
        VocabFixture fixture(backend, test, rank);
        const ValueId y = fixture.Add(residual, {17, 3, hidden});
        fixture.Run(
            op::Embedding{.tokens = fixture.I32({17, 3}, tokens),
                          .weight = fixture.Floats(dtype, {test.capacity(), hidden}, test.Rows(weight, rank, Unread)),
                          .y = y,
                          .vocab_axes = VocabAxes});
        EXPECT_EQ(fixture.Numbers(y), expected);
      }
    }
  });
}

// A row that is not a number shows where a token names it, and nowhere else.
TEST(Embedding, NanOfARowStaysThere) {
  constexpr VocabCase Test{2, 4};
  ForElementTypes([&](const Backend& backend, DType dtype) {
    VocabFixture fixture(backend, Test, 1);
    const ValueId y = fixture.Add(dtype, {3, 1, 1});
    fixture.Run(op::Embedding{.tokens = fixture.I32({3, 1}, {0, 2, 3}),
                              .weight = fixture.Floats(dtype, {2, 1}, {Unread, 5}),
                              .y = y,
                              .vocab_axes = VocabAxes});
    const auto numbers = fixture.Numbers(y);
    EXPECT_EQ(numbers[0], 0);
    EXPECT_TRUE(std::isnan(numbers[1]));
    EXPECT_EQ(numbers[2], 5);
  });
}

TEST(Embedding, NamesTheTokenOutOfRangeOnEveryRank) {
  constexpr VocabCase Test{2, 5};
  ForBackends([&](const Backend& backend) {
    for (const int64_t rank : {0, 1}) {
      // 5 would lie in the padding after the vocabulary.
      for (const int32_t bad : {-1, 5, 6}) {
        VocabFixture fixture(backend, Test, rank);
        const Status status = fixture.TryRun(op::Embedding{.tokens = fixture.I32({3, 1}, {0, bad, 4}),
                                                           .weight = fixture.F32({3, 2}, RandomNumbers(6, 1)),
                                                           .y = fixture.Add(DType::F32, {3, 1, 2}),
                                                           .vocab_axes = VocabAxes});
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.error().message, fmt::format("token id {} at position 1 is outside the vocabulary of 5", bad));
      }
    }
  });
}

TEST(Embedding, NamesTheTokenOutOfRange) {
  for (const int32_t bad : {-1, 5, 1 << 30}) {
    KernelFixture fixture;
    const ValueId ids = fixture.I32({3, 1}, {0, bad, 4});
    const ValueId weight = fixture.F32({5, 2}, RandomNumbers(10, 1));
    const ValueId y = fixture.Add(DType::F32, {3, 1, 2});
    const Status status = fixture.TryRun(op::Embedding{.tokens = ids, .weight = weight, .y = y});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, fmt::format("token id {} at position 1 is outside the vocabulary of 5", bad));
  }
}

}  // namespace shardc
