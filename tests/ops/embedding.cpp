#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/kernel_fixture.h"

namespace shardc {

TEST(Embedding, CopiesRows) {
  for (const auto& [sequence, batch, hidden, vocabulary] :
       {std::array{1, 1, 1, 2}, {17, 3, 10, 257}, {65, 1, 33, 5}, {64, 2, 700, 19}}) {
    KernelFixture fixture;
    const auto tokens = RandomTokens(sequence * batch, 1, vocabulary);
    const ValueId ids = fixture.I32({sequence, batch}, tokens);
    const ValueId weight = fixture.F32({vocabulary, hidden}, RandomNumbers(vocabulary * hidden, 2));
    const ValueId y = fixture.Add(DType::F32, {sequence, batch, hidden});
    fixture.Run(op::Embedding{.tokens = ids, .weight = weight, .y = y});
    for (size_t i = 0; i < tokens.size(); ++i) {
      const auto row =
          fixture.At<float>(weight).subspan(static_cast<size_t>(tokens[i] * hidden), static_cast<size_t>(hidden));
      const auto copy = fixture.At<float>(y).subspan(i * static_cast<size_t>(hidden), static_cast<size_t>(hidden));
      ASSERT_TRUE(std::equal(row.begin(), row.end(), copy.begin())) << "token " << i;
    }
  }
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
