// Quantities with their unit in the type. Memory prints in binary GiB, wires in decimal GB; always with the unit.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace shardc {

template <class Tag, class Number>
struct Quantity {
  Number value{};

  friend constexpr auto operator<=>(const Quantity&, const Quantity&) = default;
  constexpr auto operator+=(Quantity other) -> Quantity& {
    value += other.value;
    return *this;
  }
  constexpr auto operator-=(Quantity other) -> Quantity& {
    value -= other.value;
    return *this;
  }
  friend constexpr auto operator+(Quantity a, Quantity b) -> Quantity { return a += b; }
  friend constexpr auto operator-(Quantity a, Quantity b) -> Quantity { return a -= b; }
  friend constexpr auto operator*(Quantity a, Number n) -> Quantity { return {a.value * n}; }
  friend constexpr auto operator/(Quantity a, Number n) -> Quantity { return {a.value / n}; }
};

using Bytes = Quantity<struct BytesTag, int64_t>;
using Flops = Quantity<struct FlopsTag, int64_t>;
using Seconds = Quantity<struct SecondsTag, double>;

/// "1.50 GiB", "12.0 KiB", "17 B": binary units, for memory.
auto FormatMemory(Bytes bytes) -> std::string;
/// "1.50 GB", "12.0 kB": decimal units, for wires.
auto FormatWire(Bytes bytes) -> std::string;
/// "3.21 TFLOP": decimal units.
auto FormatFlops(Flops flops) -> std::string;
/// The same for sums over all ranks, which may not fit an integer.
auto FormatFlops(double flops) -> std::string;

constexpr auto RoundUp(int64_t n, int64_t multiple) -> int64_t { return (n + multiple - 1) / multiple * multiple; }
constexpr auto CeilDiv(int64_t n, int64_t d) -> int64_t { return (n + d - 1) / d; }

}  // namespace shardc
