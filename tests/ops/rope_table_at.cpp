#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/rope_case.h"

namespace shardc {

TEST(RopeTableAt, HoldsAnglesOfPositions) {
  ForBackends([](const Backend& backend) {
    // More pairs than a launch on a GPU takes, too.
    for (const auto& [sequence, batch, head_dim] : {std::array{1, 1, 2}, {17, 3, 6}, {65, 2, 32}, {9, 1, 700}}) {
      SCOPED_TRACE(fmt::format("S={} B={} D={}", sequence, batch, head_dim));
      KernelFixture fixture(backend);
      const auto positions = PositionsOfTokens(sequence * batch);
      const ValueId table = fixture.Add(DType::F32, {sequence, batch, 2, head_dim / 2});
      fixture.Run(op::RopeTableAt{.positions = fixture.I32({sequence, batch}, positions),
                                  .table = table,
                                  .frequency = RopeFrequencyOf(head_dim)});
      std::vector<double> expected;
      for (const int32_t position : positions) {
        for (int part = 0; part < 2; ++part) {
          for (int i = 0; i < head_dim / 2; ++i) {
            const double angle = position / std::pow(10000.0, 2.0 * i / head_dim);
            expected.push_back(part == 0 ? std::cos(angle) : std::sin(angle));
          }
        }
      }
      ExpectClose(OpKind::RopeTable, "table", fixture.At<float>(table), expected);
    }
  });
}

// A sequence that is one document has the same angles with and without its positions.
TEST(RopeTableAt, HasBitsOfRopeTable) {
  for (const int64_t threads : {1, 3}) {
    SetComputeThreads(threads);
    KernelFixture fixture;
    std::vector<int32_t> positions;
    for (int32_t s = 0; s < 300; ++s) {
      positions.insert(positions.end(), {s, s});
    }
    const ValueId table = fixture.Add(DType::F32, {300, 2, 2, 16});
    fixture.Run(op::RopeTableAt{
        .positions = fixture.I32({300, 2}, positions), .table = table, .frequency = RopeFrequencyOf(32)});
    const auto whole = fixture.Numbers(RopeTableOf(fixture, 300, 32));
    const auto by_token = fixture.Numbers(table);
    for (size_t s = 0; s < 300; ++s) {
      for (size_t i = 0; i < 64; ++i) {
        ASSERT_EQ(by_token[s * 64 + i], whole[s * 32 + i % 32]) << s << ' ' << i;
      }
    }
  }
  SetComputeThreads(1);
}

TEST(RopeTableAt, NamesPositionWithoutAngle) {
  KernelFixture fixture;
  const ValueId table = fixture.Add(DType::F32, {2, 1, 2, 1});
  const auto run = [&](int32_t position) {
    return fixture.TryRun(
        op::RopeTableAt{.positions = fixture.I32({2, 1}, {0, position}), .table = table, .frequency = "2 + index(0)"});
  };
  EXPECT_TRUE(run(1 << 29).ok());
  const Status status = run((1 << 29) + 1);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            "position 536870913 of a document has an angle of 1073741826 in the rotary embedding, and angles end at "
            "2^30: lower model.rope_frequency");
}

}  // namespace shardc
