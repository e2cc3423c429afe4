#include "compiler/expr/element.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "compiler/base/check.h"
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
    const auto words = Philox4x32({LowHalf(block), HighHalf(block), static_cast<uint64_t>(draw), RandomPurposeInit},
                                  program.keys[static_cast<size_t>(stream)]);
    return static_cast<int32_t>(words[number % ElementsPerBlock]);
  }

  auto Loaded(int load, const double* position) const -> double {
    if (loaded.empty()) {
      return 1;
    }
    const LoadedTensor& tensor = *loaded[static_cast<size_t>(load)];
    float value = 0;
    tensor.Read(tensor.ElementAt(position == nullptr ? Element() : *position), 1, &value);
    return value;
  }

  static auto Compute(ExprFunction function, std::span<const double> arguments) -> Computed<double> {
    return ComputeFunction(function, arguments);
  }

  const ElementProgram& program;
  int64_t element;
  const std::vector<const LoadedTensor*>& loaded;
};

}  // namespace

ElementEvaluator::ElementEvaluator(ElementProgram program, std::vector<const LoadedTensor*> loaded)
    : program_(std::move(program)), loaded_(std::move(loaded)) {
  CHECK(loaded_.empty() || loaded_.size() == program_.loads.size(), "{} tensors for {} loads", loaded_.size(),
        program_.loads.size());
}

auto ElementEvaluator::Evaluate(int root, int64_t element) const -> Value {
  ScalarTarget target{program_, element, loaded_};
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

auto ElementEvaluator::DependOnLoaded() const -> std::vector<bool> {
  std::vector<bool> depends(program_.ops.size(), false);
  const auto is_dependent = [&](int op) { return op >= 0 && depends[static_cast<size_t>(op)]; };
  for (size_t i = 0; i < depends.size(); ++i) {
    const ElementOp& op = program_.ops[i];
    const bool is_norm = op.kind == ElementOpKind::Number &&
                         std::any_of(program_.row_norms.begin(), program_.row_norms.end(), [&](const RowNorm& norm) {
                           return norm.slot == op.slot && is_dependent(norm.root);
                         });
    depends[i] = op.kind == ElementOpKind::Loaded || is_norm || is_dependent(op.position) ||
                 std::any_of(op.operands.begin(), op.operands.end(), is_dependent);
  }
  return depends;
}

auto ElementEvaluator::HasKnownFault(int64_t element) -> bool {
  const std::vector<bool> depends = DependOnLoaded();
  // Norms of what is loaded are as good as it; a fault of the others is one of the rule.
  SetRowNorms(element / program_.row_size);
  ScalarTarget target{program_, element, loaded_};
  ElementEvaluation<ScalarTarget> evaluation(program_, target);
  const bool has_fault = evaluation.Run(program_.root).fault;
  if (!depends[static_cast<size_t>(program_.root)]) {
    return has_fault;
  }
  std::vector<bool> faults(depends.size(), false);
  for (size_t i = 0; i < depends.size(); ++i) {
    const ElementOp& op = program_.ops[i];
    if (!depends[i]) {
      faults[i] = evaluation.ValueOf(i).fault;
      continue;
    }
    const auto is_faulty = [&](int other) { return other >= 0 && faults[static_cast<size_t>(other)]; };
    const bool chooses =
        op.kind == ElementOpKind::Operation &&
        (op.operation == ExprNodeKind::If || op.operation == ExprNodeKind::And || op.operation == ExprNodeKind::Or);
    if (!chooses) {
      faults[i] = is_faulty(op.position) || std::any_of(op.operands.begin(), op.operands.end(), is_faulty);
      continue;
    }
    const int condition = op.operands[0];
    faults[i] = is_faulty(condition);
    if (op.operation == ExprNodeKind::If && !depends[static_cast<size_t>(condition)]) {
      faults[i] = faults[i] || is_faulty(op.operands[evaluation.ValueOf(static_cast<size_t>(condition)).mask ? 1 : 2]);
    }
  }
  return faults[static_cast<size_t>(program_.root)];
}

}  // namespace shardc
