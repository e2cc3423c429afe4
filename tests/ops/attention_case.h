// The shapes of the attention tests, with their operands and LibTorch's answer.
#pragma once

#include <fmt/format.h>

#include <array>

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

/// Returns the starts of documents: of 1 to 400 positions, others in each sequence; the first goes on from one before.
inline auto DocumentsOf(const AttentionShape& shape) -> std::vector<int32_t> {
  std::vector<int32_t> starts(static_cast<size_t>(shape.sequence * shape.batch));
  constexpr std::array<int64_t, 9> Lengths{5, 33, 1, 1, 64, 96, 2, 300, 400};
  for (int64_t b = 0; b < shape.batch; ++b) {
    int64_t start = 0;
    int64_t length = Lengths[static_cast<size_t>(3 * b + shape.head_dim) % Lengths.size()];
    for (int64_t s = 0, document = 4 * b; s < shape.sequence; ++s) {
      if (s == start + length) {
        start = s;
        length = Lengths[static_cast<size_t>(document++) % Lengths.size()];
      }
      starts[static_cast<size_t>(s * shape.batch + b)] = static_cast<int32_t>(start);
    }
  }
  return starts;
}

struct AttentionCase {
  /// Takes no starts if sequences are documents.
  explicit AttentionCase(const AttentionShape& of, double spread = 1, DType dtype_of = DType::F32,
                         std::vector<int32_t> starts_of = {})
      : shape(of),
        dtype(dtype_of),
        q_dims{of.sequence, of.batch, of.heads * of.head_dim},
        k_dims{of.sequence, of.batch, of.kv_heads * of.head_dim},
        q(RandomNumbers(dtype, NumElements(q_dims), 1, spread)),
        k(RandomNumbers(dtype, NumElements(k_dims), 2, spread)),
        v(RandomNumbers(dtype, NumElements(k_dims), 3)),
        dy(RandomNumbers(dtype, NumElements(q_dims), 4)),
        starts(std::move(starts_of)),
        expected(TorchAttention(of, q, k, v, dy, starts)) {}

  auto StartsIn(KernelFixture& fixture) const -> ValueId {
    return starts.empty() ? ValueId{} : fixture.I32({shape.sequence, shape.batch}, starts);
  }

  /// Returns what `numbers`, an operand or a result, has of some positions. Requires: one sequence; head_dim is not 1.
  auto PositionsOf(const Numbers& numbers, int64_t begin, int64_t end) const -> Numbers {
    const bool is_lse = std::ssize(numbers) == shape.heads * shape.sequence;
    const int64_t rows = is_lse ? shape.heads : 1;
    const int64_t width = std::ssize(numbers) / (rows * shape.sequence);
    Numbers some;
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = numbers.begin() + row * shape.sequence * width;
      some.insert(some.end(), first + begin * width, first + end * width);
    }
    return some;
  }

  /// Returns the case of some positions, as one document. Requires: they are one, and as above.
  auto Range(int64_t begin, int64_t end) const -> AttentionCase {
    AttentionCase range = *this;
    for (Numbers* numbers : {&range.q, &range.k, &range.v, &range.dy, &range.expected.y, &range.expected.lse}) {
      *numbers = PositionsOf(*numbers, begin, end);
    }
    range.shape.sequence = end - begin;
    range.q_dims[0] = end - begin;
    range.k_dims[0] = end - begin;
    range.starts.clear();
    return range;
  }

  AttentionShape shape;
  DType dtype = DType::F32;
  Dims q_dims;
  Dims k_dims;
  Numbers q;
  Numbers k;
  Numbers v;
  Numbers dy;
  std::vector<int32_t> starts;
  AttentionResult expected;
};

/// Calls body(backend, test) for each element type, shape and backend, with sequences that are documents, or of some.
template <class Body>
auto ForAttentionCases(bool has_documents, const Body& body) -> void {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    for (const AttentionShape& shape : AttentionShapes) {
      const AttentionCase test(shape, 1, dtype, has_documents ? DocumentsOf(shape) : std::vector<int32_t>{});
      ForBackends([&](const Backend& backend) {
        SCOPED_TRACE(fmt::format("{} {}", ToText(dtype), ToText(shape)));
        body(backend, test);
      });
    }
  }
}

/// Expects the bits of sequences that are documents, of starts that are 0.
template <class Run, class... Result>
auto ExpectBitsOfNoStarts(const Run& run, Result... results) -> void {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const AttentionShape shape{.sequence = 270, .batch = 2, .heads = 2, .kv_heads = 1, .head_dim = 16};
    const AttentionCase without(shape, 1, dtype);
    const AttentionCase with(shape, 1, dtype, std::vector<int32_t>(540, 0));
    ForBackends([&](const Backend& backend) {
      KernelFixture fixture(backend);
      const auto plain = run(fixture, without);
      const auto of_documents = run(fixture, with);
      for (const auto result : {results...}) {
        EXPECT_EQ(fixture.Numbers(of_documents.*result), fixture.Numbers(plain.*result));
      }
    });
  }
}

/// Expects each document of a sequence to have the bits that it has alone: it begins where a tile does, and so tiles
/// which it is not in change nothing.
template <class Run, class... Result>
auto ExpectBitsOfDocumentsAlone(const Run& run, Result... results) -> void {
  constexpr std::array<int32_t, 3> Borders{0, 256, 600};
  const AttentionShape shape{.sequence = Borders.back(), .batch = 1, .heads = 2, .kv_heads = 1, .head_dim = 16};
  std::vector<int32_t> starts;
  for (size_t i = 0; i + 1 < Borders.size(); ++i) {
    starts.insert(starts.end(), static_cast<size_t>(Borders[i + 1] - Borders[i]), Borders[i]);
  }
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const AttentionCase packed(shape, 1, dtype, starts);
    ForBackends([&](const Backend& backend) {
      // The reference computes whole sequences at once.
      if (backend.kernels == KernelSet::Reference) {
        return;
      }
      KernelFixture fixture(backend);
      const auto together = run(fixture, packed);
      for (size_t i = 0; i + 1 < Borders.size(); ++i) {
        SCOPED_TRACE(fmt::format("{} document {}", ToText(dtype), i));
        const AttentionCase document = packed.Range(Borders[i], Borders[i + 1]);
        KernelFixture other(backend);
        const auto alone = run(other, document);
        for (const auto result : {results...}) {
          EXPECT_EQ(other.Numbers(alone.*result),
                    packed.PositionsOf(fixture.Numbers(together.*result), Borders[i], Borders[i + 1]));
        }
      }
    });
  }
}

/// Expects the same bits of `run(fixture, test)` on one thread and on three, in each of the values of its op.
template <class Run, class... Result>
auto ExpectBitsOfAnyThreads(const Run& run, Result... results) -> void {
  constexpr AttentionShape Shape{.sequence = 150, .batch = 5, .heads = 8, .kv_heads = 4, .head_dim = 32};
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const AttentionCase test(Shape, 1, dtype, DocumentsOf(Shape));
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
