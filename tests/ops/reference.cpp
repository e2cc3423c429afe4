// The kernels of products, whose tests are against other references, beside the reference kernels: the tests of all
// other ops run on the reference backend too.
#include <gtest/gtest.h>

#include "tests/ops/tolerance.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

/// Calls body(fixture, dtype, rounding, matches) for each element type, once with the reference kernels in f32, then
/// for each backend. Operands are of type dtype and hold numbers of type rounding, so that all see the same ones and
/// what is compared with is not rounded. matches(op, what, value) keeps the numbers of the reference, and then expects
/// others to be close to them.
template <class Body>
static auto CompareWithReference(const Body& body) -> void {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    std::map<std::string_view, std::vector<double>> expected;
    {
      KernelFixture fixture(Backend{.kernels = KernelSet::Reference});
      body(fixture, DType::F32, dtype,
           [&](OpKind, std::string_view what, ValueId value) { expected[what] = fixture.Numbers(value); });
    }
    ForBackends([&](const Backend& backend) {
      SCOPED_TRACE(ToText(dtype));
      KernelFixture fixture(backend);
      body(fixture, dtype, dtype, [&](OpKind op, std::string_view what, ValueId value) {
        ExpectClose(op, what, fixture, value, expected.at(what));
      });
    });
  }
}

TEST(Reference, Matmul) {
  for (const auto& [m, n, k] : {std::array{1, 1, 1}, {17, 33, 129}, {65, 10, 300}}) {
    for (int bits = 0; bits < 8; ++bits) {
      SCOPED_TRACE(fmt::format("m={} n={} k={} case {}", m, n, k, bits));
      const bool transpose_a = (bits & 1) != 0;
      const bool transpose_b = (bits & 2) != 0;
      const bool adds = (bits & 4) != 0;
      CompareWithReference([&](KernelFixture& fixture, DType dtype, DType rounding, const auto& matches) {
        const ValueId onto = fixture.Floats(dtype, {m, n}, RandomNumbers(rounding, m * n, 3));
        const ValueId out = fixture.Over(onto);
        fixture.Run(op::Matmul{
            .a = fixture.Floats(dtype, transpose_a ? Dims{k, m} : Dims{m, k}, RandomNumbers(rounding, m * k, 1)),
            .b = fixture.Floats(dtype, transpose_b ? Dims{n, k} : Dims{k, n}, RandomNumbers(rounding, k * n, 2)),
            .out = out,
            .out_onto = adds ? onto : ValueId{},
            .transpose_a = transpose_a,
            .transpose_b = transpose_b});
        matches(OpKind::Matmul, "out", out);
      });
    }
  }
}

TEST(Reference, Attention) {
  for (const auto& [sequence, batch, heads, kv_heads, head_dim] :
       {std::array{1, 1, 1, 1, 2}, {17, 3, 4, 2, 6}, {65, 1, 2, 1, 10}, {129, 2, 3, 3, 32}}) {
    SCOPED_TRACE(fmt::format("S={} B={} A={} K={} D={}", sequence, batch, heads, kv_heads, head_dim));
    const Dims q_dims{sequence, batch, heads * head_dim};
    const Dims k_dims{sequence, batch, kv_heads * head_dim};
    CompareWithReference([&](KernelFixture& fixture, DType dtype, DType rounding, const auto& matches) {
      const auto random = [&](const Dims& dims, uint64_t seed) {
        return fixture.Floats(dtype, dims, RandomNumbers(rounding, NumElements(dims), seed));
      };
      const op::Attention forward{.q = random(q_dims, 1),
                                  .k = random(k_dims, 2),
                                  .v = random(k_dims, 3),
                                  .y = fixture.Add(dtype, q_dims),
                                  .lse = fixture.Add(DType::F32, {batch, heads, sequence}),
                                  .scratch = {},
                                  .head_dim = head_dim};
      fixture.Run(forward);
      matches(OpKind::Attention, "y", forward.y);
      matches(OpKind::Attention, "lse", forward.lse);
      const op::AttentionBackward backward{.dy = random(q_dims, 4),
                                           .q = forward.q,
                                           .k = forward.k,
                                           .v = forward.v,
                                           .y = forward.y,
                                           .lse = forward.lse,
                                           .dq = fixture.Add(dtype, q_dims),
                                           .dk = fixture.Add(dtype, k_dims),
                                           .dv = fixture.Add(dtype, k_dims),
                                           .scratch = {},
                                           .head_dim = head_dim};
      fixture.Run(backward);
      matches(OpKind::AttentionBackward, "dq", backward.dq);
      matches(OpKind::AttentionBackward, "dk", backward.dk);
      matches(OpKind::AttentionBackward, "dv", backward.dv);
    });
  }
}

}  // namespace shardc
