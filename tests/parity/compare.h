// How far two sets of tensors are apart: bit for bit, or as norms per parameter against what f32 arithmetic costs
// LibTorch.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/parity/training_run.h"

namespace shardc {

/// ||actual - expected|| / ||scale||; 0 where actual and expected are equal.
auto RelativeError(const Numbers& actual, const Numbers& expected, const Numbers& scale) -> double;

/// The largest relative error that a parameter may have: `floor`, or `times` what LibTorch in f32 is off by, whichever
/// is more.
struct Tolerance {
  double floor = 0;
  double times = 0;
};

/// The demand on gradients: 1e-6 is 8 ulp of f32; the order of the sums differs from LibTorch's, and so does the order
/// of either on another processor: 2.23 times its error were seen (a Xeon with AVX-512 FP16; 2.04 on a Zen 3).
inline const Tolerance GradientTolerance{.floor = 1e-6, .times = 3};

struct Worst {
  std::string parameter;
  double error = 0;
  /// error / tolerance, of the parameter where that is largest.
  double used = 0;
};

/// Expects every parameter of `actual` within tolerance of `f64`, where `f32` is LibTorch's result in f32 and `scale`
/// says by whose norm errors are divided. Prints the worst.
auto ExpectClose(const std::string& what, const NamedNumbers& actual, const NamedNumbers& f64, const NamedNumbers& f32,
                 const NamedNumbers& scale, const Tolerance& tolerance) -> Worst;

/// Relative, of a mean loss: f32 logits, sums over rows in f64.
constexpr double LossTolerance = 1e-6;

/// Expects loss and gradients of a run of one step as LibTorch's autograd has them in f64.
auto ExpectAutograd(const std::string& what, const TrainingRun& run) -> void;

/// The same bits in every number, NaN of any kind taken as one.
auto SameBits(const Numbers& a, const Numbers& b) -> bool;
/// Names the first tensor that differs.
auto SameBits(const NamedNumbers& a, const NamedNumbers& b) -> testing::AssertionResult;

}  // namespace shardc
