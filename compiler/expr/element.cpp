#include "compiler/expr/element.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/expr/evaluate_element.h"

namespace shardc {

auto RandomKey(uint64_t seed, std::string_view name) -> PhiloxKey<uint64_t> {
  const uint64_t hash = XXH3_64bits_withSeed(name.data(), name.size(), seed);
  return {LowHalf(hash), HighHalf(hash)};
}

namespace {

struct ScalarTarget {
  using Number = double;
  using Float = float;

  auto Literal(int slot) const -> double { return program.numbers[static_cast<size_t>(slot)]; }
  auto Element() const -> double { return static_cast<double>(element); }
  auto Word(int stream, int draw, const double* position) const -> int32_t {
    const auto number = static_cast<uint64_t>(position == nullptr ? element : ToInteger(*position));
    const uint64_t block = number / ElementsPerBlock;
    const auto words =
        Philox4x32({LowHalf(block), HighHalf(block), static_cast<uint64_t>(draw), RandomPurposeInit},
                             program.keys[static_cast<size_t>(stream)]);
    return static_cast<int32_t>(words[number % ElementsPerBlock]);
  }

  static auto Compute(ExprFunction function, std::span<const double> arguments) -> Computed<double> {
    return ComputeFunction(function, arguments);
  }

  const ElementProgram& program;
  int64_t element;
};

}  // namespace

auto ElementEvaluator::Evaluate(int root, int64_t element) const -> Value {
  ScalarTarget target{program_, element};
  const auto value = ElementEvaluation<ScalarTarget>(program_, target).Run(root);
  return {.number = value.number, .has_fault = value.fault || !std::isfinite(static_cast<float>(value.number))};
}

/// Returns: whether an element of the row had a fault.
auto ElementEvaluator::SetRowNorms(int64_t row) -> bool {
  bool has_fault = false;
  for (const RowNorm& norm : program_.row_norms) {
    double sum = 0;
    for (int64_t i = 0; i < program_.row_size; ++i) {
      const Value value = Evaluate(norm.root, row * program_.row_size + i);
      sum += value.number * value.number;
      has_fault = has_fault || value.has_fault;
    }
    program_.numbers[static_cast<size_t>(norm.slot)] = std::sqrt(sum);
  }
  return has_fault;
}

auto ElementEvaluator::At(int64_t element) -> Value {
  const int64_t row = element / program_.row_size;
  if (row != row_ && !program_.row_norms.empty()) {
    row_ = row;
    if (SetRowNorms(row)) {
      row_ = -1;
      return {.number = 0, .has_fault = true};
    }
  }
  return Evaluate(program_.root, element);
}

}  // namespace shardc
