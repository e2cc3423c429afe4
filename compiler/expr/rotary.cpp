#include "compiler/expr/rotary.h"

#include <fmt/format.h>

#include "compiler/base/check.h"
#include "compiler/expr/element.h"
#include "compiler/expr/math.h"

namespace shardc {

auto ReadReducedFrequency(std::string_view text) -> std::optional<Expr> {
  const auto frequency = ParseExpr(text, ExprKind::Frequency);
  if (!frequency.ok()) {
    return std::nullopt;
  }
  auto reduced = ReduceRule(frequency.value, {});
  return reduced.ok() ? std::optional(std::move(reduced.value)) : std::nullopt;
}

static auto MakeEvaluator(const Expr& frequency, int64_t num_pairs) -> ElementEvaluator {
  CHECK(num_pairs > 0 && num_pairs <= MostRotaryPairs, "{} pairs", num_pairs);
  auto program =
      MakeElementProgram({.rule = frequency, .shape = {num_pairs}}, [](std::string_view) { return nullptr; });
  CHECK(program.ok(), "`{}`: {}", frequency.text(), program.errors.front().message);
  return ElementEvaluator(std::move(program.value));
}

auto RotaryFault(const Expr& frequency, int64_t num_pairs, int64_t num_positions) -> std::string {
  ElementEvaluator evaluator = MakeEvaluator(frequency, num_pairs);
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    const auto [value, has_fault] = evaluator.At(pair);
    if (has_fault) {
      return fmt::format("of pair {} has no value", pair);
    }
    if (value < 0) {
      return fmt::format("of pair {} is {}; a frequency is 0 or more", pair, value);
    }
    if (const double angle = static_cast<double>(num_positions - 1) * value; angle > MostAngle) {
      return fmt::format("of pair {} is {}; position {} has an angle of {} there, and angles end at 2^30", pair, value,
                         num_positions - 1, angle);
    }
  }
  return {};
}

auto RotaryFrequencies(const Expr& frequency, int64_t num_pairs) -> std::vector<double> {
  ElementEvaluator evaluator = MakeEvaluator(frequency, num_pairs);
  std::vector<double> frequencies;
  for (int64_t pair = 0; pair < num_pairs; ++pair) {
    const auto [value, has_fault] = evaluator.At(pair);
    CHECK(!has_fault, "`{}` has no value for pair {}", frequency.text(), pair);
    frequencies.push_back(value);
  }
  return frequencies;
}

// With calls of fma instead of its instruction it takes five times as long.
[[gnu::target("fma,sse4.1"), gnu::flatten]] auto WriteRotaryRow(std::span<const double> frequencies, int64_t position,
                                                                float* row) -> void {
  const size_t half = frequencies.size();
  for (size_t pair = 0; pair < half; ++pair) {
    const double angle = static_cast<double>(position) * frequencies[pair];
    row[pair] = static_cast<float>(Cos(angle));
    row[half + pair] = static_cast<float>(Sin(angle));
  }
}

}  // namespace shardc
