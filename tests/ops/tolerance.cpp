#include "tests/ops/tolerance.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace shardc {

// One rounding of f32 is 6e-8 of the value; operands of the tests are of size 1.
static constexpr Tolerance Tolerances[] = {
    {OpKind::RopeTable, DType::F32, 1e-7, 0, "f64 angles, rounded once"},
    {OpKind::RmsNorm, DType::F32, 1e-7, 5e-7, "blocks of 256 squares in f32; two products"},
    {OpKind::RmsNormBackward, DType::F32, 4e-6, 1e-6, "a difference of two terms; blocks of 32 rows in f32"},
    {OpKind::LayerNorm, DType::F32, 1e-6, 5e-7, "blocks of 256 terms in f32; a difference, two products, a sum"},
    {OpKind::LayerNormBackward, DType::F32, 6e-6, 1e-6, "differences of three terms; blocks of 32 rows in f32"},
    {OpKind::Matmul, DType::F32, 3e-5, 1e-6,
     "f32 sums of k products of size 1 / sqrt(k), k up to 1,100, which may cancel"},
    {OpKind::Rope, DType::F32, 3e-7, 2e-7, "a difference of two products"},
    {OpKind::Attention, DType::F32, 2e-6, 2e-6, "scores of 128 products in f32 enter an exponent; sums of 64 terms"},
    {OpKind::AttentionBackward, DType::F32, 6e-6, 3e-6, "sums over up to 200 queries of two heads, which may cancel"},
    {OpKind::Swiglu, DType::F32, 1e-7, 5e-7, "one exponential, one quotient, two products"},
    {OpKind::Gelu, DType::F32, 1e-7, 5e-7, "one exponential, two quotients, a polynomial"},
    {OpKind::GeluBackward, DType::F32, 1e-6, 5e-7, "the same; its two terms cancel near -0.75"},
    {OpKind::SwigluBackward, DType::F32, 5e-7, 1e-6, "one exponential, one quotient; gate (1 - s) + 1 may cancel"},
    {OpKind::Scale, DType::F32, 0, 1.2e-7, "the factor and the product rounded once each"},
    {OpKind::Add, DType::F32, 0, 6e-8, "rounded once"},
    {OpKind::BiasAdd, DType::F32, 0, 6e-8, "rounded once"},
    {OpKind::BiasAddBackward, DType::F32, 2e-6, 1e-6, "blocks of 32 rows in f32, which may cancel"},
    {OpKind::HeadNorm, DType::F32, 1e-7, 5e-7, "blocks of 256 squares in f32; two products"},
    {OpKind::HeadNormBackward, DType::F32, 4e-6, 1e-6, "a difference of two terms; blocks of 32 rows in f32"},
    {OpKind::CrossEntropy, DType::F32, 1e-6, 3e-7, "lse rounded to f32; blocks of 256 exponentials in f32"},
    {OpKind::CrossEntropy, DType::F64, 1e-6, 3e-8, "a sum of f32 lse, whose roundings cancel in part"},
    {OpKind::LogSumExp, DType::F32, 1e-6, 3e-7, "rounded to f32; blocks of 256 exponentials in f32"},
    {OpKind::ShardedCrossEntropy, DType::F32, 1e-7, 2e-7, "parts and lse are rounded to f32, each once"},
    {OpKind::ShardedCrossEntropy, DType::F64, 1e-6, 1e-7, "a sum of f32 lse, whose roundings cancel in part"},
    {OpKind::CrossEntropyBackward, DType::F32, 2e-8, 2e-6, "the rounding of lse and of logit - lse enters an exponent"},
    {OpKind::EmbeddingBackward, DType::F32, 2e-6, 1e-6, "f32 sums of the rows of one token"},
    {OpKind::SumSquares, DType::F64, 0, 1e-14, "squares and sums in f64"},
    {OpKind::ClipFactor, DType::F64, 0, 1e-15, "f64"},
    {OpKind::Adamw, DType::F32, 1e-6, 1e-6, "a root, two quotients; ten steps of roundings"},
    {OpKind::Sgd, DType::F32, 1e-6, 1e-6, "sums of products; a buffer over ten steps of roundings, which may cancel"},
    // bf16 operands are exact in f32, and sums are kept there: what is allowed beyond the row of f32 is the rounding of
    // the result, 2^-8 = 0.00391 of the value, taken upwards by what may lie across a tie.
    {OpKind::RmsNorm, DType::BF16, 1e-7, 0.00392, "rounded once"},
    {OpKind::RmsNormBackward, DType::BF16, 4e-6, 0.00392, "rounded once, the term that it adds to included"},
    {OpKind::LayerNorm, DType::BF16, 1e-6, 0.00392, "rounded once"},
    {OpKind::LayerNormBackward, DType::BF16, 6e-6, 0.00392, "rounded once, the term that it adds to included"},
    {OpKind::Matmul, DType::BF16, 3e-5, 0.00392,
     "rounded once, 2^-8 of a value just above a power of two; the term that it adds to included"},
    {OpKind::Attention, DType::BF16, 0.01, 0.006,
     "probabilities of up to 1 are rounded to bf16 before they meet values of up to 4"},
    {OpKind::AttentionBackward, DType::BF16, 0.04, 0.01,
     "probabilities, their gradients and y are rounded to bf16; sums over up to 545 queries of four heads"},
    {OpKind::Rope, DType::BF16, 3e-7, 0.00392, "rounded once"},
    {OpKind::Swiglu, DType::BF16, 1e-7, 0.00392, "rounded once"},
    {OpKind::Gelu, DType::BF16, 1e-7, 0.00392, "rounded once"},
    {OpKind::GeluBackward, DType::BF16, 1e-6, 0.00392, "rounded once"},
    {OpKind::SwigluBackward, DType::BF16, 5e-7, 0.00392, "rounded once"},
    {OpKind::Scale, DType::BF16, 0, 0.00392, "rounded once"},
    {OpKind::Add, DType::BF16, 0, 0.00392, "rounded once"},
    {OpKind::BiasAdd, DType::BF16, 0, 0.00392, "rounded once"},
    {OpKind::HeadNorm, DType::BF16, 1e-7, 0.00392, "rounded once"},
    {OpKind::HeadNormBackward, DType::BF16, 4e-6, 0.00392, "rounded once, the term that it adds to included"},
    {OpKind::CrossEntropyBackward, DType::BF16, 2e-8, 0.00392, "rounded once"},
    {OpKind::ResidualAdd, DType::F32, 0, 6e-8, "rounded once"},
    {OpKind::ResidualAdd, DType::BF16, 0, 0.00392, "rounded once"},
};

auto ToleranceOf(OpKind op, DType dtype) -> const Tolerance& {
  for (const Tolerance& row : Tolerances) {
    if (row.op == op && row.dtype == dtype) {
      return row;
    }
  }
  CHECK(false, "no tolerance row for {} in {}", ToText(op), ToText(dtype));
}

template <class T>
static auto ExpectCloseAs(OpKind op, std::string_view what, std::span<const T> actual,
                          const std::vector<double>& expected, DType dtype,
                          const std::vector<double>& rounded_first = {}) -> void {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const Tolerance& tolerance = ToleranceOf(op, dtype);
  double most_used = 0;
  size_t worst = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(static_cast<double>(actual[i]) - expected[i]);
    const double first = rounded_first.empty() ? 0 : std::abs(rounded_first[i]);
    const double allowed = tolerance.abs + tolerance.rel * (std::abs(expected[i]) + first);
    const double used = difference == 0 ? 0 : difference / allowed;
    // A NaN uses more than any number.
    if (!(used <= most_used)) {
      most_used = used;
      worst = i;
      if (std::isnan(used)) {
        break;
      }
    }
  }
  const std::string report =
      expected.empty()
          ? ""
          : fmt::format("{} {}: greatest difference {:.3g} at [{}] (expected {:.9g}), {:.0f} % of the tolerance",
                        ToText(op), what, std::abs(static_cast<double>(actual[worst]) - expected[worst]), worst,
                        expected[worst], most_used * 100);
  EXPECT_LE(most_used, 1) << report << " (" << tolerance.why << ")";
  if (std::getenv("SHARDC_SHOW_TOLERANCES") != nullptr) {
    fmt::print("{}\n", report);
  }
}

auto ExpectClose(OpKind op, std::string_view what, std::span<const float> actual, const std::vector<double>& expected)
    -> void {
  ExpectCloseAs(op, what, actual, expected, DType::F32);
}

auto ExpectClose(OpKind op, std::string_view what, std::span<const double> actual, const std::vector<double>& expected)
    -> void {
  ExpectCloseAs(op, what, actual, expected, DType::F64);
}

auto ExpectClose(OpKind op, std::string_view what, KernelFixture& fixture, ValueId actual,
                 const std::vector<double>& expected, const std::vector<double>& rounded_first) -> void {
  const std::vector<double> numbers = fixture.Numbers(actual);
  ExpectCloseAs(op, what, std::span<const double>(numbers), expected, fixture.plan().values[actual].dtype,
                rounded_first);
}

}  // namespace shardc
