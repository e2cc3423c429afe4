// The random streams of init rules, as schemas/random.md freezes them, over numbers or generated code (numeric.h).
//
// Philox4x32-10: a counter-based generator. A block of four random words is a pure function of a 64-bit key and a
// 128-bit counter, so any element of any tensor can be drawn by anyone, in any order. Source: Salmon et al., "Parallel
// Random Numbers: As Easy as 1, 2, 3", SC 2011; known answers of Random123's kat_vectors.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "compiler/expr/math.h"
#include "compiler/expr/normal_law.h"
#include "compiler/expr/numeric.h"

namespace shardc {

/// A counter or a block of words; a word is 32 bits, in a whole number of 64 or more.
template <class Word>
using PhiloxBlock = std::array<Word, 4>;
template <class Word>
using PhiloxKey = std::array<Word, 2>;

/// Returns the generator's key of one parameter: XXH3-64 of its name, seeded; the low half first.
auto RandomKey(uint64_t seed, std::string_view name) -> PhiloxKey<uint64_t>;

/// The last word of the counter: what is drawn for.
constexpr uint64_t RandomPurposeInit = 0;

/// Elements that share a block of words.
constexpr int64_t ElementsPerBlock = 4;

constexpr int PhiloxRounds = 10;

/// Runs a round of the generator. The bits of a word above the lowest 32 are ignored.
template <class Word>
constexpr auto PhiloxRound(PhiloxBlock<Word>& counter, PhiloxKey<Word>& key) -> void {
  const Word product0 = LowHalf(counter[0]) * uint64_t{0xD2511F53};
  const Word product1 = LowHalf(counter[2]) * uint64_t{0xCD9E8D57};
  counter = {HighHalf(product1) ^ counter[1] ^ key[0], product1, HighHalf(product0) ^ counter[3] ^ key[1], product0};
  key = {key[0] + uint64_t{0x9E3779B9}, key[1] + uint64_t{0xBB67AE85}};
}

constexpr auto Philox4x32(PhiloxBlock<uint64_t> counter, PhiloxKey<uint64_t> key) -> PhiloxBlock<uint64_t> {
  for (int round = 0; round < PhiloxRounds; ++round) {
    PhiloxRound(counter, key);
  }
  return {LowHalf(counter[0]), LowHalf(counter[1]), LowHalf(counter[2]), LowHalf(counter[3])};
}

/// Returns a word as a number between -1 and 1, in the middle of one of 2^24 equal cells: its lowest 23 bits m and its
/// highest s make (-1)^s (m + 1/2) 2^-23, which a float holds.
template <class Word>
auto SymmetricOf(Word word) {
  const auto from_one = FromBits((word & 0x007FFFFF) | 0x3F800000);
  const auto magnitude = from_one - (1.0F - 0x1p-24F);
  return FromBits(BitsOf(magnitude) | (word & std::numeric_limits<int32_t>::min()));
}

/// Returns the nearest of the floats that are not below (not above) x.
template <class Number>
auto FloatFrom(Number x) {
  const auto nearest = ToFloat(x);
  return Select(ToDouble(nearest) < x, NextFloat(nearest), nearest);
}
template <class Number>
auto FloatUpTo(Number x) {
  return -FloatFrom(-x);
}

template <class Number>
auto Clamped(Number x, Number low, Number high) -> Number {
  const Number from_below = Select(x < low, low, x);
  return Select(from_below > high, high, from_below);
}

/// Returns true if the interval from a to b lies beside the mean.
template <class Number>
auto IsTail(Number mean, Number a, Number b) {
  return Either(b<mean, a> mean);
}

/// A law that maps a number between -1 and 1 to a draw, in floats. Laws are made from numbers, once for many elements.
template <class Float>
struct NormalLaw {
  Float mean, std;

  template <class Number>
  static auto Of(Number mean, Number std) -> NormalLaw {
    return {ToFloat(mean), ToFloat(std)};
  }

  auto Draw(Float x) const -> Float { return mean + std * StandardNormal(x); }
};

template <class Float>
struct UniformLaw {
  Float middle, half, low, high;

  template <class Number>
  static auto Of(Number a, Number b) -> UniformLaw {
    return {ToFloat(a * 0.5 + b * 0.5), ToFloat(b * 0.5 - a * 0.5), FloatFrom(a), FloatUpTo(b)};
  }

  auto Draw(Float x) const -> Float { return Clamped(middle + half * x, low, high); }
};

/// A normal law cut to an interval that has its mean in it. In x, which is uniform, the interval is `middle` +- `half`.
template <class Float>
struct TruncNormalLaw {
  Float mean, std, middle, half, low, high;

  template <class Number>
  static auto Of(Number mean, Number std, Number a, Number b) -> TruncNormalLaw {
    const Number from = Erf((a - mean) / std * M_SQRT1_2);
    const Number to = Erf((b - mean) / std * M_SQRT1_2);
    return {ToFloat(mean), ToFloat(std), ToFloat(from * 0.5 + to * 0.5), ToFloat(to * 0.5 - from * 0.5),
            FloatFrom(a),  FloatUpTo(b)};
  }

  auto Draw(Float x) const -> Float {
    const Float edge = Like(x, 1 - 0x1p-24);
    return Clamped(mean + std * StandardNormal(Clamped(middle + half * x, -edge, edge)), low, high);
  }
};

/// Truncated normal in one tail: inverts the (small) tail probability in double.
template <class Number, class Float>
struct TailNormalLaw {
  /// `side` is 1 below the mean, -1 above it. Probabilities are from `from`, over an interval of length `width`; if
  /// nothing is left of them, the value is `nearest`, the bound next to the mean.
  Number mean, std, side, from, width, nearest;
  Float low, high;

  static auto Of(Number mean, Number std, Number a, Number b) -> TailNormalLaw {
    const auto is_below = b < mean;
    const Number side = Select(is_below, Like(mean, 1), Like(mean, -1));
    const Number nearest = Select(is_below, b, a);
    const Number far = NormalCdf(side * (Select(is_below, a, b) - mean) / std);
    const Number near = NormalCdf(side * (nearest - mean) / std);
    return {mean, std, side, far, near - far, nearest, FloatFrom(a), FloatUpTo(b)};
  }

  auto Draw(Float x) const -> Float {
    const Number p = from + width * (ToDouble(x) * 0.5 + 0.5);
    const auto is_left = p >= std::numeric_limits<double>::min();
    const Number z = NormalQuantile(Select(is_left, p, Like(p, 0.5)));
    return Clamped(ToFloat(Select(is_left, mean + std * side * z, nearest)), low, high);
  }
};

}  // namespace shardc
