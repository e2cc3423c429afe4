// How far a kernel may be from its reference: one row an op and dtype, each with its reason.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "compiler/plan/op.h"
#include "tests/support/kernel_fixture.h"

namespace shardc {

struct Tolerance {
  OpKind op = OpKind::Fill;
  DType dtype = DType::F32;
  /// Allowed: abs + rel * |expected|, of each element.
  double abs = 0;
  double rel = 0;
  std::string_view why;
};

auto ToleranceOf(OpKind op, DType dtype) -> const Tolerance&;

/// Expects every element within the op's tolerance. A failure tells the greatest difference, where, and how much of the
/// tolerance it takes.
auto ExpectClose(OpKind op, std::string_view what, std::span<const float> actual, const std::vector<double>& expected)
    -> void;
auto ExpectClose(OpKind op, std::string_view what, std::span<const double> actual, const std::vector<double>& expected)
    -> void;

/// Expects it of a value of any floating type. `rounded_first`: the terms that a kernel may round before it adds them
/// to the others, if any; their rounding is allowed besides.
auto ExpectClose(OpKind op, std::string_view what, KernelFixture& fixture, ValueId actual,
                 const std::vector<double>& expected, const std::vector<double>& rounded_first = {}) -> void;

}  // namespace shardc
