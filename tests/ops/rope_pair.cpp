#include <gtest/gtest.h>

#include "tests/ops/rope_case.h"

namespace shardc {

struct RopePairCase {
  int64_t sequence = 0;
  int64_t batch = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;
  int64_t head_dim = 0;
};

constexpr RopePairCase RopePairCases[] = {
    {1, 1, 1, 1, 2}, {17, 3, 4, 2, 6}, {5, 1, 7, 1, 10}, {9, 2, 40, 8, 64}, {33, 2, 4, 4, 128}};

/// Calls body(fixture, dtype, test, inverse) for each backend, element type, case and direction.
template <class Body>
static auto ForRopePairs(const Body& body) -> void {
  ForElementTypes([&](const Backend& backend, DType dtype) {
    for (const RopePairCase& test : RopePairCases) {
      for (const bool inverse : {false, true}) {
        SCOPED_TRACE(fmt::format("S={} B={} A={} K={} D={} inverse {}", test.sequence, test.batch, test.heads,
                                 test.kv_heads, test.head_dim, inverse));
        KernelFixture fixture(backend);
        body(fixture, dtype, test, inverse);
      }
    }
  });
}

TEST(RopePair, RotatesBothInF64) {
  ForRopePairs([](KernelFixture& fixture, DType dtype, const RopePairCase& test, bool inverse) {
    const auto [sequence, batch, heads, kv_heads, head_dim] = test;
    const int64_t q_row = batch * heads * head_dim;
    const int64_t k_row = batch * kv_heads * head_dim;
    const auto q_numbers = RandomNumbers(dtype, sequence * q_row, 1);
    const auto k_numbers = RandomNumbers(dtype, sequence * k_row, 2);
    const ValueId q = fixture.Floats(dtype, {sequence, batch, heads * head_dim}, q_numbers);
    const ValueId k = fixture.Floats(dtype, {sequence, batch, kv_heads * head_dim}, k_numbers);
    const op::RopePair body{.q = q,
                            .k = k,
                            .table = RopeTableOf(fixture, sequence, head_dim),
                            .rotated_q = fixture.Over(q),
                            .rotated_k = fixture.Over(k),
                            .head_dim = head_dim,
                            .inverse = inverse};
    fixture.Run(body);
    const double sign = inverse ? -1 : 1;
    ExpectClose(OpKind::Rope, "q", fixture, body.rotated_q, Rotated(q_numbers, q_row, head_dim, sign));
    ExpectClose(OpKind::Rope, "k", fixture, body.rotated_k, Rotated(k_numbers, k_row, head_dim, sign));
  });
}

/// Expects of rope_pair what two ropes give, by the table that table_of(fixture, test) returns.
template <class TableOf>
static auto ExpectBitsOfTwoRopes(const TableOf& table_of) -> void {
  ForRopePairs([&](KernelFixture& fixture, DType dtype, const RopePairCase& test, bool inverse) {
    const auto [sequence, batch, heads, kv_heads, head_dim] = test;
    const ValueId table = table_of(fixture, test);
    const auto operand = [&](int64_t width, uint64_t seed) {
      return fixture.Floats(dtype, {sequence, batch, width * head_dim},
                            RandomNumbers(dtype, sequence * batch * width * head_dim, seed));
    };
    const ValueId q = operand(heads, 1);
    const ValueId k = operand(kv_heads, 2);
    const op::RopePair pair{.q = q,
                            .k = k,
                            .table = table,
                            .rotated_q = fixture.Over(q),
                            .rotated_k = fixture.Over(k),
                            .head_dim = head_dim,
                            .inverse = inverse};
    fixture.Run(pair);
    const auto rotated = [&](ValueId x) {
      const ValueId y = fixture.Over(x);
      fixture.Run(op::Rope{.x = x, .table = table, .y = y, .head_dim = head_dim, .inverse = inverse});
      return fixture.Numbers(y);
    };
    EXPECT_EQ(fixture.Numbers(pair.rotated_q), rotated(operand(heads, 1)));
    EXPECT_EQ(fixture.Numbers(pair.rotated_k), rotated(operand(kv_heads, 2)));
  });
}

TEST(RopePair, HasBitsOfTwoRopes) {
  ExpectBitsOfTwoRopes([](KernelFixture& fixture, const RopePairCase& test) {
    return RopeTableOf(fixture, test.sequence, test.head_dim);
  });
}

TEST(RopePair, HasBitsOfTwoRopesOfTokens) {
  ExpectBitsOfTwoRopes([](KernelFixture& fixture, const RopePairCase& test) {
    const ValueId table = fixture.Add(DType::F32, {test.sequence, test.batch, 2, test.head_dim / 2});
    fixture.Run(op::RopeTableAt{
        .positions = fixture.I32({test.sequence, test.batch}, PositionsOfTokens(test.sequence * test.batch)),
        .table = table,
        .frequency = RopeFrequencyOf(test.head_dim)});
    return table;
  });
}

}  // namespace shardc
