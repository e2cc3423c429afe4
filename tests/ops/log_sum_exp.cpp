#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/tolerance.h"
#include "tests/ops/torch_oracle.h"
#include "tests/ops/vocab_case.h"

namespace shardc {

TEST(LogSumExp, EqualsLibTorchInF64) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (const auto& [sequence, batch, columns, spread] :
         {std::array{1, 1, 2, 1}, {17, 3, 257, 1}, {65, 1, 10, 3}, {5, 3, 1000, 20}}) {
      SCOPED_TRACE(fmt::format("S={} B={} V={}", sequence, batch, columns));
      KernelFixture fixture(backend);
      const int64_t rows = sequence * batch;
      const auto logits = RandomNumbers(dtype, rows * columns, 1, spread);
      const ValueId lse = fixture.Add(DType::F32, {sequence, batch});
      fixture.Run(op::LogSumExp{
          .logits = fixture.Floats(dtype, {sequence, batch, columns}, logits), .lse = lse, .vocab_axes = {}});
      ExpectClose(OpKind::LogSumExp, "lse", fixture.At<float>(lse), TorchLogSumExp(rows, columns, logits));
    }
  });
}

TEST(LogSumExp, TakesTheColumnsOfThisRank) {
  ForVocabRanks([](const Backend& backend, DType dtype, const VocabCase& test, int64_t rank) {
    constexpr int64_t Rows = 51;
    const auto logits = RandomNumbers(dtype, Rows * test.vocabulary, 1, 2);
    VocabFixture fixture(backend, test, rank);
    const ValueId lse = fixture.Add(DType::F32, {17, 3});
    fixture.Run(
        op::LogSumExp{.logits = fixture.Floats(dtype, {17, 3, test.capacity()}, test.Columns(logits, rank, Unread)),
                      .lse = lse,
                      .vocab_axes = VocabAxes});
    // e^-inf is 0.
    constexpr double None = -std::numeric_limits<double>::infinity();
    const auto expected = TorchLogSumExp(Rows, test.capacity(), test.Columns(logits, rank, None));
    if (test.Has(rank, rank * test.capacity())) {
      ExpectClose(OpKind::LogSumExp, "lse", fixture.At<float>(lse), expected);
    } else {
      EXPECT_EQ(fixture.Numbers(lse), std::vector<double>(Rows, None));
    }
  });
}

TEST(LogSumExp, NanShows) {
  ForElementTypes([](const Backend& backend, DType dtype) {
    for (size_t at = 0; at < 3; ++at) {
      KernelFixture fixture(backend);
      std::vector<double> logits{1, 2, 3, 1, 2, 3};
      logits[at] = std::nan("");
      const ValueId lse = fixture.Add(DType::F32, {2, 1});
      fixture.Run(op::LogSumExp{.logits = fixture.Floats(dtype, {2, 1, 3}, logits), .lse = lse, .vocab_axes = {}});
      EXPECT_TRUE(std::isnan(fixture.At<float>(lse)[0]));
      EXPECT_FALSE(std::isnan(fixture.At<float>(lse)[1]));
    }
  });
}

}  // namespace shardc
