#include "runtime/core/initial_state.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compiler/expr/moments.h"
#include "compiler/expr/random.h"
#include "compiler/plan/init_rule.h"

namespace shardc {

namespace {

/// Returns true if a rank of a lower number holds the same elements.
auto IsCopy(const Plan& plan, const SubVector& sub_vector, int64_t rank) -> bool {
  return plan.mesh.IndexIn(CopyAxes(sub_vector, plan.mesh), rank) > 0;
}

/// Sums the numbers over all ranks, in pieces that the control takes.
auto SumOverRanks(RankControl& control, std::vector<double>& numbers) -> Status {
  constexpr size_t Most = RankControl::MaxBytes / sizeof(double);
  for (size_t begin = 0; begin < numbers.size(); begin += Most) {
    RETURN_IF_ERROR(control.Sum(AxisSet::All(), reinterpret_cast<std::byte*>(numbers.data() + begin),
                                static_cast<int64_t>(std::min(Most, numbers.size() - begin)), DType::F64));
  }
  return Success{};
}

}  // namespace

auto SumDrawn(RankControl& control, const Plan& plan, const IdVector<ParameterId, Drawn>& mine) -> ErrorOr<DrawnByAll> {
  // Counts stay far below 2^53.
  const size_t all_begin = static_cast<size_t>(plan.parameters.size()) * 3;
  std::vector<double> numbers(all_begin + 2, 0.0);
  const std::vector<bool> reads = ReadsSeed(plan);
  for (const ParameterId id : plan.parameters.ids()) {
    numbers[all_begin + (reads[static_cast<size_t>(id.index)] ? 1 : 0)] += static_cast<double>(mine[id].count);
  }
  for (const SubVector& sub_vector : plan.sub_vectors) {
    if (IsCopy(plan, sub_vector, control.rank())) {
      continue;
    }
    for (const Segment& segment : sub_vector.segments) {
      const Drawn& drawn = mine[segment.parameter];
      double* const of_parameter = numbers.data() + static_cast<size_t>(segment.parameter.index) * 3;
      of_parameter[0] = static_cast<double>(drawn.count);
      of_parameter[1] = drawn.sum;
      of_parameter[2] = drawn.squares;
    }
  }
  RETURN_IF_ERROR(SumOverRanks(control, numbers));
  DrawnByAll all;
  for (size_t i = 0; i < all_begin; i += 3) {
    all.parameters.Add({.count = static_cast<int64_t>(numbers[i]), .sum = numbers[i + 1], .squares = numbers[i + 2]});
  }
  all.elements = static_cast<int64_t>(numbers[all_begin]);
  all.read_elements = static_cast<int64_t>(numbers[all_begin + 1]);
  return all;
}

namespace {

/// How far chance takes the elements of a distribution.
struct Chance {
  /// E (x - mean)^4 / std^4, or an upper bound.
  double kurtosis = 3;
  /// Deviations from the mean beyond which one element comes less than once in 10^15.
  double farthest = 8;
};

auto ChanceOf(const Distribution& rule) -> Chance {
  switch (rule.kind) {
    case DistributionKind::Constant: return {.kurtosis = 1, .farthest = 0};
    case DistributionKind::Uniform: return {.kurtosis = 1.8, .farthest = 1.8};
    case DistributionKind::Normal: return {};
    case DistributionKind::TruncNormal: {
      // A truncated normal that keeps its mean has kurtosis at most 3.87 (half normal). One cut to a tail approaches
      // the exponential distribution: kurtosis 9, and beyond 36 deviations once in 10^16.
      const bool is_tail = IsTail(rule.arguments.at(0), rule.arguments.at(2), rule.arguments.at(3));
      return is_tail ? Chance{.kurtosis = 9, .farthest = 36} : Chance{.kurtosis = 4, .farthest = 9};
    }
  }
  CHECK(false, "kind {}", static_cast<int>(rule.kind));
}

constexpr double StandardErrors = 8;

/// Returns the largest relative rounding error of a stored number, half a unit in the last place, and of sums in f64.
auto RoundingOf(DType dtype) -> double { return (dtype == DType::BF16 ? 0x1p-8 : 0x1p-24) + 1e-9; }

struct Range {
  double low = 0;
  double high = 0;

  auto Has(double value) const -> bool { return low <= value && value <= high; }
};

/// Returns the range that the mean, and below the deviation, of n elements should be in. One of few elements has much
/// weight: `farthest` is added, over n.
auto AllowedMean(const Moments& moments, const Chance& chance, double n, double rounding) -> Range {
  const double reach = moments.std * (StandardErrors / std::sqrt(n) + chance.farthest / n) + rounding;
  return {moments.mean - reach, moments.mean + reach};
}

auto AllowedStd(const Moments& moments, const Chance& chance, double n, double rounding) -> Range {
  // That of the mean square of x - mean, over the variance.
  const double reach = StandardErrors * std::sqrt((chance.kurtosis - 1) / n) + chance.farthest * chance.farthest / n;
  return {moments.std * std::sqrt(std::max(0.0, 1 - reach)) - rounding, moments.std * std::sqrt(1 + reach) + rounding};
}

auto Off(const Parameter& parameter, std::string_view what, double realised, double expected, const Range& allowed)
    -> Error {
  return Fail(
      ExitCode::InternalFault,
      "{}: the {} of its {} elements is {:.6g}; of {} it is {:.6g}, and chance leaves it within [{:.6g}, {:.6g}]",
      parameter.name, what, parameter.num_elements(), realised, parameter.init, expected, allowed.low, allowed.high);
}

}  // namespace

auto RealisedInit(const Plan& plan, const DrawnByAll& all) -> ErrorOr<InitRecord> {
  InitRecord record{
      .seed = plan.run.init_seed, .loaded_from = plan.seed.manifest, .elements_drawn = all.elements, .parameters = {}};
  for (const ParameterId id : plan.parameters.ids()) {
    const Parameter& parameter = plan.parameters[id];
    const Drawn& drawn = all.parameters[id];
    if (LoadedTensorOf(parameter)) {
      continue;
    }
    FAIL_IF(drawn.count != parameter.num_elements(), ExitCode::InternalFault,
            "{}: {} elements were drawn, and it has {}", parameter.name, drawn.count, parameter.num_elements());
    const auto distribution = InitDistribution(parameter);
    const Moments moments = distribution ? MomentsOf(*distribution) : Moments{};
    const auto n = static_cast<double>(drawn.count);
    const double off = drawn.sum / n;
    const double mean = moments.mean + off;
    const double std = std::sqrt(std::max(0.0, drawn.squares / n - off * off));
    if (distribution) {
      const double rounding = RoundingOf(parameter.dtype) * std::hypot(moments.mean, moments.std);
      const Chance chance = ChanceOf(*distribution);
      if (const Range allowed = AllowedMean(moments, chance, n, rounding); !allowed.Has(mean)) {
        return Off(parameter, "mean", mean, moments.mean, allowed);
      }
      if (const Range allowed = AllowedStd(moments, chance, n, rounding); !allowed.Has(std)) {
        return Off(parameter, "standard deviation", std, moments.std, allowed);
      }
    }
    record.parameters.push_back({.name = parameter.name,
                                 .shape = parameter.shape,
                                 .dtype = parameter.dtype,
                                 .rule = parameter.init,
                                 .mean = mean,
                                 .std = std});
  }
  return record;
}

}  // namespace shardc
