#include "tests/parity/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "compiler/base/check.h"

namespace shardc {

static auto Norm(const Numbers& numbers) -> double {
  double sum = 0;
  for (const double number : numbers) {
    sum += number * number;
  }
  return std::sqrt(sum);
}

auto RelativeError(const Numbers& actual, const Numbers& expected, const Numbers& scale) -> double {
  CHECK(actual.size() == expected.size(), "{} numbers, {} expected", actual.size(), expected.size());
  Numbers difference(actual.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    difference[i] = actual[i] - expected[i];
  }
  const double error = Norm(difference);
  return error == 0 ? 0 : error / Norm(scale);
}

auto ExpectClose(const std::string& what, const NamedNumbers& actual, const NamedNumbers& f64, const NamedNumbers& f32,
                 const NamedNumbers& scale, const Tolerance& tolerance) -> Worst {
  CHECK(actual.size() == f64.size() && actual.size() == f32.size(), "{}: {} tensors, the oracle has {} and {}", what,
        actual.size(), f64.size(), f32.size());
  Worst worst;
  for (const auto& [name, numbers] : actual) {
    const double error = RelativeError(numbers, f64.at(name), scale.at(name));
    const double torch_error = RelativeError(f32.at(name), f64.at(name), scale.at(name));
    const double allowed = std::max(tolerance.floor, tolerance.times * torch_error);
    EXPECT_LE(error, allowed) << what << ": " << name << ", LibTorch: " << torch_error;
    // Written so that a NaN is the worst.
    if (!(error / allowed <= worst.used)) {
      worst = {.parameter = name, .error = error, .used = error / allowed};
    }
  }
  fmt::print("{}: worst {}, relative error {:.2g}, {:.0f} per cent of tolerance\n", what, worst.parameter, worst.error,
             100 * worst.used);
  return worst;
}

auto ExpectAutograd(const std::string& what, const TrainingRun& run) -> void {
  CHECK(run.batches.size() == 1, "{}: {} steps, of which the first has the initial parameters", what,
        run.batches.size());
  const LossAndGradients f64 = TorchGradients(Precision::F64, run.shape, run.initial, run.batches[0]);
  const LossAndGradients f32 = TorchGradients(Precision::F32, run.shape, run.initial, run.batches[0]);
  EXPECT_NEAR(run.losses[0], f64.loss, LossTolerance * f64.loss) << what;
  ExpectClose(what, run.gradients, f64.gradients, f32.gradients, f64.gradients, GradientTolerance);
}

/// One of all that are no numbers.
static auto BitsOfNumber(double number) -> uint64_t {
  return std::bit_cast<uint64_t>(std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number);
}

auto SameBits(const Numbers& a, const Numbers& b) -> bool {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return BitsOfNumber(x) == BitsOfNumber(y); });
}

auto SameBits(const NamedNumbers& a, const NamedNumbers& b) -> testing::AssertionResult {
  for (const auto& [name, numbers] : a) {
    const auto other = b.find(name);
    if (other == b.end() || !SameBits(numbers, other->second)) {
      return testing::AssertionFailure() << name << " differs";
    }
  }
  return a.size() == b.size() ? testing::AssertionSuccess()
                              : testing::AssertionFailure() << a.size() << " tensors, " << b.size();
}

}  // namespace shardc
