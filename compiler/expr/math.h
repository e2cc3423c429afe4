// The functions of the expression language, written over doubles of any type with the operations of numeric.h: for the
// evaluator, and for generated code, which gives the same bits. No machine's library is asked.
//
// Where a result takes more than one step, what the first rounds off is carried beside it, as a second number. The
// polynomials are ours: interpolation in Chebyshev's nodes, with more digits than doubles have. What each function is
// off by at most, in ulp, is in schemas/init_functions.def, and a test measures it.
//
// Sources: the reductions and the kernels of sin, cos and log follow fdlibm (Sun Microsystems, 1993); the arithmetic of
// sums of two numbers is that of Dekker, Numerische Mathematik 18 (1971).
#pragma once

#include "compiler/expr/numeric.h"

namespace shardc {

/// Computes 2^k. Requires: -1022 <= k <= 1023.
template <class Integer>
auto PowerOfTwo(Integer k) {
  return FromBits((k + int64_t{1023}) << 52);
}

/// A power of e: k is whole, high 0.35 at most, and low far less.
template <class F>
struct ExpParts {
  F k;
  F high;
  F low;
};

/// Its product with an exponent is exact.
constexpr double Log2High = 0x1.62e42fefa38p-1;
constexpr double Log2Low = 0x1.ef35793c7673p-45;

/// Splits e^(x + x_low) into 2^k (1 + high + low). Requires: -746 <= x <= 710, x_low within an ulp of x.
template <class F>
auto SplitExp(F x, F x_low) -> ExpParts<F> {
  static constexpr double Series[] = {0x1p-1,
                                      0x1.5555555555557p-3,
                                      0x1.5555555555556p-5,
                                      0x1.11111111100bep-7,
                                      0x1.6c16c16c162c3p-10,
                                      0x1.a01a01abf85abp-13,
                                      0x1.a01a01a6e1e2ap-16,
                                      0x1.71de01fdbf9cap-19,
                                      0x1.27e4db46cddd1p-22,
                                      0x1.af4e554377204p-26,
                                      0x1.1f7340dbc337ep-29};
  const F k = Round(x * 0x1.71547652b82fep+0);
  const F first = Fma(k, Like(x, -Log2High), x);
  const F second = first + x_low;
  const F high = Fma(k, Like(x, -Log2Low), second);
  const F rest = Fma(k, Like(x, -Log2Low), second - high) + ((first - second) + x_low);
  return {.k = k, .high = high, .low = Fma(high * high, FusedPolynomial(Series, high), Fma(rest, high, rest))};
}

/// Computes e^(x + x_low). Requires: x_low within an ulp of x.
template <class F>
auto ExpOfSum(F x, F x_low) -> F {
  // All beyond is 0 or infinity, too.
  constexpr double Least = -746;
  constexpr double Most = 710;
  const auto is_out = Either(x > Most, x < Least);
  const F kept = Select(is_out, Select(x < Least, Like(x, Least), Like(x, Most)), x);
  const ExpParts<F> parts = SplitExp(kept, Select(is_out, Like(x, 0.0), x_low));
  const F sum = 1.0 + parts.high;
  const auto k = ToInteger(parts.k);
  const auto half_k = k >> 1;
  return (sum + (((1.0 - sum) + parts.high) + parts.low)) * PowerOfTwo(half_k) * PowerOfTwo(k - half_k);
}

template <class F>
auto Exp(F x) -> F {
  return ExpOfSum(x, Like(x, 0.0));
}

/// x = 2^k m, with m from sqrt(1/2) to sqrt(2).
template <class F>
struct LogParts {
  F k;
  F m;
};

/// Requires: x > 0.
template <class F>
auto SplitLog(F x) -> LogParts<F> {
  constexpr int64_t RootOfHalf = 0x3FE6A09E667F3BCD;
  const auto is_subnormal = x < 0x1p-1022;
  const auto bits = BitsOf(Select(is_subnormal, x * 0x1p54, x));
  const auto exponent = (bits - RootOfHalf) >> 52;
  return {.k = ToNumber(exponent) - Select(is_subnormal, Like(x, 54.0), Like(x, 0.0)),
          .m = FromBits(bits - (exponent << 52))};
}

/// Requires: x > 0.
template <class F>
auto Log(F x) -> F {
  static constexpr double Series[] = {0x1.5555555555558p-1, 0x1.99999999952d7p-2, 0x1.2492492df281ap-2,
                                      0x1.c71c62e3f11e6p-3, 0x1.7462b51cb66b1p-3, 0x1.39fe51a7c18f9p-3,
                                      0x1.2b5900de53b32p-3};
  const auto [k, m] = SplitLog(x);
  const F f = m - 1.0;
  const F s = f / (2.0 + f);
  const F z = s * s;
  const F half_square = 0.5 * f * f;
  const F rest = s * Fma(z, FusedPolynomial(Series, z), half_square);
  return k * Log2High - ((half_square - Fma(k, Like(x, Log2Low), rest)) - f);
}

/// Computes x to the power y. The logarithm has 64 right bits or more: with s = (m - 1) / (m + 1) in two parts it is k
/// log 2 + 2 s (1 + z (1/3 + z P(z))), z = s^2. Requires: x > 0, or y >= 0 if x is 0, or whole y if x < 0.
template <class F>
auto Pow(F x, F y) -> F {
  static constexpr double Series[] = {0x1.999999999999ap-3, 0x1.2492492492521p-3, 0x1.c71c71c6eaa1p-4,
                                      0x1.745d177a96056p-4, 0x1.3b1395d2190c1p-4, 0x1.1118c7e4b0917p-4,
                                      0x1.df7cc8e5fa539p-5, 0x1.e02e6fff27908p-5};
  constexpr double Third = 0x1.5555555555555p-2;
  constexpr double ThirdLow = 0x1.5555555555555p-56;
  // Whatever else x is than 1, all powers beyond are 0 or infinity, too.
  constexpr double MostPower = 0x1p66;
  const F a = Abs(x);
  const auto [k, m] = SplitLog(a);
  const F f = m - 1.0;
  const F g = m + 1.0;
  const F g_low = m - (g - 1.0);
  const F s = f / g;
  const F s_low = (Fma(-s, g, f) - s * g_low) / g;
  const F z = s * s;
  const F z_low = Fma(s, s, -z) + 2.0 * s * s_low;
  const F t = z * FusedPolynomial(Series, z);
  const F c = Third + t;
  const F c_low = ((Third - c) + t) + ThirdLow;
  const F d = z * c;
  const F d_low = Fma(z, c, -d) + Fma(z, c_low, z_low * c);
  const F e = s * d;
  const F e_low = Fma(s, d, -e) + Fma(s, d_low, s_low * d);
  const F half_log = s + e;
  const F half_log_low = ((s - half_log) + e) + (s_low + e_low);
  const F shift = k * Log2High;
  const F sum = shift + 2.0 * half_log;
  const F sum_low = ((shift - sum) + 2.0 * half_log) + Fma(k, Like(x, Log2Low), 2.0 * half_log_low);
  const F log = sum + sum_low;
  const F log_low = (sum - log) + sum_low;
  const F power = Select(y > MostPower, Like(x, MostPower), Select(y < -MostPower, Like(x, -MostPower), y));
  const F product = power * log;
  const F value = ExpOfSum(product, Fma(power, log, -product) + power * log_low);
  const F half_y = 0.5 * y;
  const auto is_negative = Both(x < 0.0, Floor(half_y) < half_y);
  return Select(a > 0.0, Select(is_negative, -value, value), Select(y > 0.0, Like(x, 0.0), Like(x, 1.0)));
}

/// x = k pi/2 + high + low, within pi/4.
template <class F>
struct AngleParts {
  F k;
  F high;
  F low;
};

constexpr double MostAngle = 0x1p30;

/// Splits an angle into quarter turns and a rest. Pi is known to 2^-160 here, and no double above 1 is nearer to a
/// multiple of pi/2 than 2^-61.
/// Requires: |x| <= MostAngle.
/// Source: of the distance: Ng, Argument Reduction for Huge Arguments: Good to the Last Bit (1992).
template <class F>
auto SplitAngle(F x) -> AngleParts<F> {
  constexpr double First = 0x1.921fb54442d18p+0;
  constexpr double Second = 0x1.1a62633145c07p-54;
  constexpr double Third = -0x1.f1976b7ed8fbcp-110;
  const F k = Round(x * 0x1.45f306dc9c883p-1);
  // Exact: a multiple of 2^-53 below 1.
  const F first = Fma(k, Like(x, -First), x);
  const F second = k * Second;
  const F difference = first - second;
  const F taken = difference - first;
  const F lost = (first - (difference - taken)) - (second + taken);
  const F rest = lost - Fma(k, Like(x, Third), Fma(k, Like(x, Second), -second));
  const F high = difference + rest;
  return {.k = k, .high = high, .low = (difference - high) + rest};
}

/// Computes the sine of the angle, `quarters` quarter turns further.
template <class F>
auto SinOfParts(const AngleParts<F>& angle, int64_t quarters) -> F {
  const auto sine = [&] {
    static constexpr double Series[] = {-0x1.5555555555555p-3, 0x1.1111111110bb2p-7,   -0x1.a01a019e83816p-13,
                                        0x1.71de379654304p-19, -0x1.ae600aca92c64p-26, 0x1.5e0b05bff20f2p-33};
    const F z = angle.high * angle.high;
    return angle.high + Fma(angle.high * z, FusedPolynomial(Series, z), Fma(-0.5 * z, angle.low, angle.low));
  };
  const auto cosine = [&] {
    static constexpr double Series[] = {0x1.5555555555555p-5,   -0x1.6c16c16c16967p-10, 0x1.a01a019f4e9b4p-16,
                                        -0x1.27e4fa17bf139p-22, 0x1.1eeb68cd22f56p-29,  -0x1.907d8f29fe831p-37};
    const F z = angle.high * angle.high;
    const F z_low = Fma(angle.high, angle.high, -z);
    const F half = 0.5 * z;
    const F sum = 1.0 - half;
    const F rest = Fma(z * z, FusedPolynomial(Series, z), -Fma(angle.high, angle.low, 0.5 * z_low));
    return sum + (((1.0 - sum) - half) + rest);
  };
  const auto quarter = ToInteger(angle.k) + quarters;
  const F value = Select((quarter & int64_t{1}) > int64_t{0}, cosine(), sine());
  return FromBits(BitsOf(value) ^ ((quarter & int64_t{2}) << 62));
}

/// Requires: |x| <= MostAngle.
template <class F>
auto Sin(F x) -> F {
  return SinOfParts(SplitAngle(x), 0);
}

/// Requires: |x| <= MostAngle.
template <class F>
auto Cos(F x) -> F {
  return SinOfParts(SplitAngle(x), 1);
}

/// Computes tanh(x): with e = e^(-2|x|) - 1, it is -e / (2 + e).
template <class F>
auto Tanh(F x) -> F {
  // From there on it is 1.
  constexpr double Most = 22;
  const F a = Abs(x);
  const F kept = Select(a > Most, Like(x, Most), a);
  const ExpParts<F> parts = SplitExp(-2.0 * kept, Like(x, 0.0));
  const F scale = PowerOfTwo(ToInteger(parts.k));
  const F t = parts.high + parts.low;
  const F t_low = (parts.high - t) + parts.low;
  const F base = scale - 1.0;
  const F base_low = scale - (base + 1.0);
  const F e = Fma(scale, t, base);
  const F e_low = Fma(scale, t, base - e) + Fma(scale, t_low, base_low);
  const F d = 2.0 + e;
  const F d_low = (2.0 - d) + e + e_low;
  const F first = e / d;
  const F value = first + (Fma(-first, d, e) + Fma(-first, d_low, e_low)) / d;
  return Select(x < 0.0, value, -value);
}

/// Computes e^(x^2) erfc(x): a polynomial of (x - 4) / (x + 4) over 1 + 2x. Requires: 0 <= x <= 28.
/// Source: of the form: Shepherd, Laframboise, Mathematics of Computation 36 (1981).
template <class F>
auto ScaledErfc(F x) -> F {
  static constexpr double Series[] = {
      0x1.3ba5916e9fd7fp+0,   -0x1.1df1ad154a29cp-3,  0x1.f7f5df66fd951p-7,   0x1.16ecefcfa6077p-4,
      -0x1.9ddb23c3e98a6p-4,  0x1.7fee004df6263p-4,   -0x1.0fb06dfe46987p-4,  0x1.3079edfa1033fp-5,
      -0x1.0962388367b2fp-6,  0x1.49c671893963fp-8,   -0x1.8d4a9dc0d22f3p-11, -0x1.a1de7c6e9ac9cp-13,
      0x1.3be0b393ee921p-13,  -0x1.996ad056e530bp-16, -0x1.78a43458cca4bp-17, 0x1.7fb88e391a9fep-18,
      0x1.4392983419eddp-22,  -0x1.c05fc977974eap-21, 0x1.0d535fce28f99p-24,  0x1.ef6c0c38d1a2bp-24,
      -0x1.09198a32cd9a9p-27, -0x1.d5bb4c6d5b92dp-27, -0x1.f47207b168acdp-30};
  return FusedPolynomial(Series, (x - 4.0) / (x + 4.0)) / (1.0 + 2.0 * x);
}

/// Computes 1 - erf(x), with all digits also if it is small. Requires: x >= 0.
template <class F>
auto Erfc(F x) -> F {
  // From there on it is 0.
  constexpr double Most = 28;
  const F kept = Select(x > Most, Like(x, Most), x);
  const F square = kept * kept;
  return ExpOfSum(-square, -Fma(kept, kept, -square)) * ScaledErfc(kept);
}

template <class F>
auto Erf(F x) -> F {
  static constexpr double Series[] = {0x1.20dd750429b6dp+0,   -0x1.812746b0379c1p-2,  0x1.ce2f21a040f66p-4,
                                      -0x1.b82ce31203772p-6,  0x1.565bccfa44156p-8,   -0x1.c02db0665e53dp-11,
                                      0x1.f9a2be4f731a1p-14,  -0x1.f4ca838adb73bp-17, 0x1.b981d78881a5dp-20,
                                      -0x1.5c131500d3f88p-23, 0x1.d76af6ca49787p-27,  -0x1.ac9585a44fe29p-31};
  const F a = Abs(x);
  const F value = Select(a < 1.0, a * FusedPolynomial(Series, a * a), 1.0 - Erfc(a));
  return Select(x < 0.0, -value, value);
}

/// Computes the inverse of erf: with w = -log(1 - x^2), it is x (5/4 + P(w)), and with s = sqrt(w) in the tail s +
/// Q(s). Requires: -1 < x < 1.
/// Source: of the variables: Giles, Approximating the erfinv function, GPU Computing Gems Jade Edition (2011).
template <class F>
auto ErfInv(F x) -> F {
  static constexpr double Middle[] = {
      0x1.017173f3b7bd3p-2,   0x1.f91e8993f0d14p-3,   -0x1.11c3c302dfe42p-8,  -0x1.4863cdfb6175ap-10,
      0x1.c9b437ed2ada5p-13,  -0x1.4f47fe72ec7cfp-18, -0x1.ca9227cafa878p-19, 0x1.01037e3783a2p-21,
      0x1.ccff743241326p-27,  -0x1.752fda310f5c5p-27, 0x1.f2cba3061bd1dp-31,  0x1.0704bf9879c7p-33,
      -0x1.11953fd528876p-35, 0x1.009541699022cp-40,  0x1.2d890a4ff1c9dp-41,  -0x1.56d81977413a1p-44,
      -0x1.9f363c3485a35p-49, 0x1.1158f64217205p-49,  -0x1.3b05ba9ab6d96p-53, -0x1.eee6b35f994bap-56,
      0x1.6a3fd44887a54p-58,  0x1.919d95d66a44fp-63,  -0x1.456805d898d1fp-64};
  static constexpr double Tail[] = {
      -0x1.45a7dad62ddp-3,    0x1.4028e585051efp-7,   0x1.f706e7845dc16p-11,  -0x1.78d9fe7c90c82p-11,
      0x1.0346db1012b94p-12,  -0x1.249fa534c600dp-14, 0x1.276a2df9b3dd2p-16,  -0x1.0858358a0b7dbp-18,
      0x1.65cae7294e704p-21,  0x1.6281c64741e3ep-28,  -0x1.590e762bb4685p-24, 0x1.a5d835b4aef24p-25,
      -0x1.4c3e939d1fb42p-26, 0x1.50ebce9da21dcp-28,  -0x1.1c8057ea837ebp-32, -0x1.0845ddf4d8af4p-31,
      0x1.351cf7ad5cdd5p-32,  -0x1.68de2c6428434p-34, 0x1.f71b9c00ff031p-38,  0x1.53705c21f6e13p-38,
      -0x1.63de159b157c8p-39, 0x1.b5599bb2620ffp-41,  -0x1.ba027dba7bcb3p-43, -0x1.4fb01abf890b9p-47,
      0x1.51a0b86eef4d6p-45,  -0x1.9ad2215fe43e4p-47, -0x1.b42bf5db0a726p-52, 0x1.9a3fe8833c529p-51,
      -0x1.ab88db006f5ddp-54};
  constexpr double MiddleCenter = 2.5;
  constexpr double TailCenter = 4.125;
  constexpr double TailBegin = 5;
  constexpr double Slope = 1.25;
  const F a = Abs(x);
  const F w = -Log(Fma(-a, a, Like(x, 1.0)));
  const F first = a * Slope;
  const F first_low = Fma(a, Like(x, Slope), -first);
  const F middle = first + Fma(a, FusedPolynomial(Middle, w - MiddleCenter), first_low);
  const auto tail = [&] {
    const F s = Sqrt(w);
    const F s_low = 0.5 * Fma(-s, s, w) / s;
    return s + (FusedPolynomial(Tail, s - TailCenter) + s_low);
  };
  const F value = SelectSeldom(w >= TailBegin, tail, middle);
  return Select(x < 0.0, -value, value);
}

/// Quotients of Remainder are smaller.
constexpr double MostQuotient = 0x1p53;

/// Computes the remainder of a after whole multiples of b, of the sign of b: a - b floor(a / b), rounded once.
/// Requires: b is not 0, |a / b| < MostQuotient.
template <class F>
auto Remainder(F a, F b) -> F {
  // The quotient may have been rounded up to a whole number: then the rest is exact, and b is missing.
  const F rest = Fma(-Floor(a / b), b, a);
  const auto is_negative = rest < 0.0;
  const auto is_positive = rest > 0.0;
  return Select(Either(Both(is_negative, b > 0.0), Both(is_positive, b < 0.0)), rest + b, rest);
}

}  // namespace shardc
