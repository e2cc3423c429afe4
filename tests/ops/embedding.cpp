#include <gtest/gtest.h>

#include "tests/support/kernel_fixture.h"

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
