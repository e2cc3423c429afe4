#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/ops/vocab_case.h"

namespace shardc {

TEST(EmbeddingBackward, AddsRowsByToken) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, hidden, vocabulary] :
         {std::array{1, 1, 1, 2}, {17, 3, 10, 257}, {65, 1, 33, 5}, {64, 2, 700, 19}}) {
      for (const bool adds : {false, true}) {
        KernelFixture fixture(backend);
        const auto tokens = RandomTokens(sequence * batch, 1, vocabulary);
        const auto dy = RandomNumbers(dtype, sequence * batch * hidden, 2);
        const auto before = RandomNumbers(vocabulary * hidden, 3);
        const ValueId onto =
            adds ? fixture.F32({vocabulary, hidden}, before) : fixture.Add(DType::F32, {vocabulary, hidden});
        const ValueId dweight = fixture.Over(onto);
        fixture.Run(op::EmbeddingBackward{.tokens = fixture.I32({sequence, batch}, tokens),
                                          .dy = fixture.Floats(dtype, {sequence, batch, hidden}, dy),
                                          .dweight = dweight,
                                          .dweight_onto = adds ? onto : ValueId{}});
        std::vector<double> expected = adds ? before : std::vector<double>(before.size(), 0.0);
        for (size_t i = 0; i < tokens.size(); ++i) {
          for (int h = 0; h < hidden; ++h) {
            expected[static_cast<size_t>(tokens[i] * hidden + h)] +=
                dy[i * static_cast<size_t>(hidden) + static_cast<size_t>(h)];
          }
        }
        ExpectClose(OpKind::EmbeddingBackward, "dweight", fixture, dweight, expected);
      }
    }
  });
}

// The padding after the vocabulary gets nothing: it is 0, or what was there.
TEST(EmbeddingBackward, AddsTheRowsOfThisRank) {
  ForVocabRanks([](const Backend& backend, DType dtype, const VocabCase& test, int64_t rank) {
    for (const int64_t hidden : {1, 10, 700}) {
      for (const bool adds : {false, true}) {
        const auto tokens = RandomTokens(51, 1, test.vocabulary);
        const auto dy = RandomNumbers(dtype, 51 * hidden, 2);
        const auto before = RandomNumbers(test.capacity() * hidden, 3);
        VocabFixture fixture(backend, test, rank);
        const Dims dims{test.capacity(), hidden};
        const ValueId onto = adds ? fixture.F32(dims, before) : fixture.Add(DType::F32, dims);
        const ValueId dweight = fixture.Over(onto);
        fixture.Run(op::EmbeddingBackward{.tokens = fixture.I32({17, 3}, tokens),
                                          .dy = fixture.Floats(dtype, {17, 3, hidden}, dy),
                                          .dweight = dweight,
                                          .dweight_onto = adds ? onto : ValueId{},
                                          .vocab_axes = VocabAxes});
        std::vector<double> whole(static_cast<size_t>(test.vocabulary * hidden), 0.0);
        for (size_t i = 0; i < tokens.size(); ++i) {
          for (int64_t h = 0; h < hidden; ++h) {
            whole[static_cast<size_t>(tokens[i] * hidden + h)] +=
                dy[i * static_cast<size_t>(hidden) + static_cast<size_t>(h)];
          }
        }
        std::vector<double> expected = test.Rows(whole, rank, 0);
        for (size_t i = 0; adds && i < expected.size(); ++i) {
          expected[i] += before[i];
        }
        ExpectClose(OpKind::EmbeddingBackward, "dweight", fixture, dweight, expected);
        const size_t held = static_cast<size_t>(
            std::clamp<int64_t>(test.vocabulary - rank * test.capacity(), 0, test.capacity()) * hidden);
        const auto numbers = fixture.Numbers(dweight);
        for (size_t i = held; i < numbers.size(); ++i) {
          EXPECT_EQ(numbers[i], adds ? before[i] : 0) << i;
        }
      }
    }
  });
}

// A gradient that is not a number shows on the rank that has the token.
TEST(EmbeddingBackward, NanGoesToOneRank) {
  constexpr VocabCase Test{2, 4};
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (const int64_t rank : {0, 1}) {
      VocabFixture fixture(backend, Test, rank);
      const ValueId dweight = fixture.Add(DType::F32, {2, 1});
      fixture.Run(op::EmbeddingBackward{.tokens = fixture.I32({2, 1}, {2, 0}),
                                        .dy = fixture.Floats(dtype, {2, 1, 1}, {Unread, 1}),
                                        .dweight = dweight,
                                        .dweight_onto = {},
                                        .vocab_axes = VocabAxes});
      const auto numbers = fixture.Numbers(dweight);
      EXPECT_EQ(std::isnan(numbers[0]), rank == 1);
      EXPECT_EQ(numbers[1], 0);
    }
  });
}

}  // namespace shardc
