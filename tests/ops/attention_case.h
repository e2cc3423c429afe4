// The shapes of the attention tests, with their operands and LibTorch's answer.
#pragma once

#include <fmt/format.h>

#include "tests/ops/torch_oracle.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

/// Odd sequences about the tiles; one and several kv heads; head widths odd, off and on the vector width; more items
/// than slots; more positions than meet a tile of keys at once.
constexpr AttentionShape AttentionShapes[] = {
    {.sequence = 1, .batch = 1, .heads = 1, .kv_heads = 1, .head_dim = 6},
    {.sequence = 1, .batch = 3, .heads = 4, .kv_heads = 2, .head_dim = 32},
    {.sequence = 17, .batch = 3, .heads = 4, .kv_heads = 2, .head_dim = 6},
    {.sequence = 63, .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 10},
    {.sequence = 64, .batch = 1, .heads = 4, .kv_heads = 4, .head_dim = 32},
    {.sequence = 65, .batch = 3, .heads = 4, .kv_heads = 2, .head_dim = 10},
    {.sequence = 128, .batch = 1, .heads = 4, .kv_heads = 2, .head_dim = 128},
    {.sequence = 200, .batch = 5, .heads = 6, .kv_heads = 3, .head_dim = 32},
    {.sequence = 257, .batch = 1, .heads = 3, .kv_heads = 1, .head_dim = 7},
    {.sequence = 545, .batch = 1, .heads = 8, .kv_heads = 2, .head_dim = 16},
};

inline auto ToText(const AttentionShape& shape) -> std::string {
  return fmt::format("S={} B={} A={} K={} D={}", shape.sequence, shape.batch, shape.heads, shape.kv_heads,
                     shape.head_dim);
}

struct AttentionCase {
  explicit AttentionCase(const AttentionShape& of, double spread = 1, DType dtype_of = DType::F32)
      : shape(of),
        dtype(dtype_of),
        q_dims{of.sequence, of.batch, of.heads * of.head_dim},
        k_dims{of.sequence, of.batch, of.kv_heads * of.head_dim},
        q(RandomNumbers(dtype, NumElements(q_dims), 1, spread)),
        k(RandomNumbers(dtype, NumElements(k_dims), 2, spread)),
        v(RandomNumbers(dtype, NumElements(k_dims), 3)),
        dy(RandomNumbers(dtype, NumElements(q_dims), 4)),
        expected(TorchAttention(of, q, k, v, dy)) {}

  AttentionShape shape;
  DType dtype = DType::F32;
  Dims q_dims;
  Dims k_dims;
  Numbers q;
  Numbers k;
  Numbers v;
  Numbers dy;
  AttentionResult expected;
};

/// Calls body(backend, test) for each element type, shape and backend.
template <class Body>
auto ForAttentionCases(const Body& body) -> void {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const AttentionShape& shape : AttentionShapes) {
      const AttentionCase test(shape, 1, dtype);
      ForBackends([&](const Backend& backend) {
        SCOPED_TRACE(fmt::format("{} {}", ToText(dtype), ToText(shape)));
        body(backend, test);
      });
    }
  }
}

/// Expects the same bits of `run(fixture, test)` on one thread and on three, in each of the values of its op.
template <class Run, class... Result>
auto ExpectBitsOfAnyThreads(const Run& run, Result... results) -> void {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const AttentionCase test({.sequence = 150, .batch = 5, .heads = 8, .kv_heads = 4, .head_dim = 32}, 1, dtype);
    ForBackends([&](const Backend& backend) {
      if (backend.kernels != KernelSet::Fused) {
        return;
      }
      KernelFixture one(backend);
      const auto with_one = run(one, test);
      SetComputeThreads(3);
      KernelFixture three(backend);
      const auto with_three = run(three, test);
      SetComputeThreads(1);
      for (const auto result : {results...}) {
        EXPECT_EQ(one.Numbers(with_one.*result), three.Numbers(with_three.*result));
      }
    });
  }
}

}  // namespace shardc
