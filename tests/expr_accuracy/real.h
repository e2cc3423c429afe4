// A number of MPFR with more digits than any comparison here needs, and what a double is off by from it.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardc {

class Real {
 public:
  Real() { mpfr_init2(value_, 128); }
  ~Real() { mpfr_clear(value_); }
  Real(const Real&) = delete;
  auto operator=(const Real&) -> Real& = delete;

  auto get() -> mpfr_ptr { return value_; }
  auto get() const -> mpfr_srcptr { return value_; }
  auto Set(double value) -> void { mpfr_set_d(value_, value, MPFR_RNDN); }
  auto ToDouble() const -> double { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

/// The distance of doubles as large as `x`.
inline auto UlpOf(double x) -> double { return std::ldexp(1.0, std::max(std::ilogb(x) - 52, -1074)); }

/// In ulp of what is expected; 0 where that is out of range and the value infinite.
inline auto UlpsOff(double value, const Real& expected) -> double {
  const double nearest = expected.ToDouble();
  if (!std::isfinite(value) || !std::isfinite(nearest)) {
    return value == nearest ? 0 : std::numeric_limits<double>::infinity();
  }
  static Real difference;
  mpfr_sub_d(difference.get(), expected.get(), value, MPFR_RNDN);
  // The exponent of one half and what follows is 0.
  const auto exponent =
      mpfr_zero_p(expected.get()) != 0 ? -1074 : std::max<long>(mpfr_get_exp(expected.get()) - 53, -1074);
  mpfr_mul_2si(difference.get(), difference.get(), -exponent, MPFR_RNDN);
  return std::abs(difference.ToDouble());
}

}  // namespace shardc
