// Evaluates every node in one loop, operands first. A node without a value keeps the fault that took it, and passes it
// on to the nodes that need it; `if`, `and`, `or` and functions drop the faults of operands that they do not need, so
// the result is that of evaluating only what is needed.

#include <cmath>
#include <optional>

#include "compiler/base/check.h"
#include "compiler/expr/expr.h"
#include "compiler/expr/functions.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/math.h"
#include "compiler/expr/names.h"
#include "compiler/expr/tree.h"

namespace shardc {

namespace {

struct Slot {
  /// Of a condition, 1 or 0.
  double number = 0;
  /// The call that made it, if it is a distribution.
  ExprNodeId distribution;
  /// The operation that has no value, if there is one.
  ExprNodeId fault;
};

class Evaluator {
 public:
  Evaluator(const Expr& expr, const ExprVariables& variables)
      : tree_(ExprAccess::Tree(expr)), text_(expr.text()), variables_(variables) {
    for (const ExprNode& node : tree_.nodes) {
      slots_.Add(Evaluate(node));
    }
  }

  auto root() const -> const Slot& { return slots_[tree_.root()]; }

  auto Errors() const -> std::vector<ExprError> {
    if (!root().fault.valid()) {
      return {};
    }
    const ExprNode& node = tree_.nodes[root().fault];
    const std::string within =
        node.library < 0 ? "" : fmt::format("in `{}`, ", ExprFunctionRows()[static_cast<size_t>(node.library)].name);
    return {ErrorAt(node.place_begin, node.place_end, "expr-domain", within + Describe(node))};
  }

  auto Result() const -> Distribution {
    if (!root().distribution.valid()) {
      return {.kind = DistributionKind::Constant, .arguments = {root().number}};
    }
    const ExprNode& call = tree_.nodes[root().distribution];
    return {.kind = Function(call).distribution, .arguments = Numbers(call)};
  }

 private:
  static auto Function(const ExprNode& call) -> const ExprFunctionRow& {
    return ExprFunctionRows()[static_cast<size_t>(call.row)];
  }

  auto Operand(const ExprNode& node, size_t i) const -> const Slot& { return slots_[node.operands[i]]; }

  /// Of its operands from `first` on.
  auto Numbers(const ExprNode& node, size_t first = 0) const -> std::vector<double> {
    std::vector<double> numbers;
    numbers.reserve(node.operands.size());
    for (size_t i = first; i < node.operands.size(); ++i) {
      numbers.push_back(Operand(node, i).number);
    }
    return numbers;
  }

  auto Variable(const ExprNode& node) const -> std::optional<double> {
    const auto found = variables_.find(ExprVariableRows()[static_cast<size_t>(node.row)].name);
    return found == variables_.end() ? std::nullopt : std::optional(found->second);
  }

  auto Evaluate(const ExprNode& node) const -> Slot {
    switch (node.kind) {
      case ExprNodeKind::Number:
      case ExprNodeKind::Bool: return {.number = node.number, .distribution = {}, .fault = {}};
      case ExprNodeKind::And: return IsDecided(node, false) ? Operand(node, 0) : Operand(node, 1);
      case ExprNodeKind::Or: return IsDecided(node, true) ? Operand(node, 0) : Operand(node, 1);
      case ExprNodeKind::If:
        if (Operand(node, 0).fault.valid()) {
          return Operand(node, 0);
        }
        return Operand(node, 0).number != 0 ? Operand(node, 1) : Operand(node, 2);
      case ExprNodeKind::Local:
      case ExprNodeKind::Parameter: return Operand(node, 0);
      case ExprNodeKind::Library:
        if (Operand(node, 0).fault.valid()) {
          return Operand(node, 0);
        }
        return Operand(node, 0).number != 0 ? Operand(node, 1)
                                            : Slot{.number = 0, .distribution = {}, .fault = ExprNodeId{slots_.size()}};
      case ExprNodeKind::Variable:
      case ExprNodeKind::Negate:
      case ExprNodeKind::Add:
      case ExprNodeKind::Subtract:
      case ExprNodeKind::Multiply:
      case ExprNodeKind::Divide:
      case ExprNodeKind::Modulo:
      case ExprNodeKind::Power:
      case ExprNodeKind::Less:
      case ExprNodeKind::LessEqual:
      case ExprNodeKind::Greater:
      case ExprNodeKind::GreaterEqual:
      case ExprNodeKind::Equal:
      case ExprNodeKind::NotEqual:
      case ExprNodeKind::Not:
      case ExprNodeKind::Call: return EvaluateStrict(node);
      case ExprNodeKind::Broken: break;
    }
    CHECK(false, "`{}` has errors", text_);
  }

  /// Whether the left operand of `and` or `or` settles the value, by a fault of its own or by being `value`.
  auto IsDecided(const ExprNode& node, bool value) const -> bool {
    const Slot& left = Operand(node, 0);
    return left.fault.valid() || (left.number != 0) == value;
  }

  /// An operation that needs all its operands.
  auto EvaluateStrict(const ExprNode& node) const -> Slot {
    for (const ExprNodeId operand : node.operands) {
      if (slots_[operand].fault.valid()) {
        return slots_[operand];
      }
    }
    const auto own = ExprNodeId{slots_.size()};
    const auto number = Compute(node);
    if (!number || !std::isfinite(*number)) {
      return {.number = 0, .distribution = {}, .fault = own};
    }
    const bool is_distribution = node.kind == ExprNodeKind::Call && Function(node).result == ExprType::Distribution;
    return {.number = *number, .distribution = is_distribution ? own : ExprNodeId{}, .fault = {}};
  }

  /// Nothing outside the domain of the operation. Division by zero and powers without a real value are not finite.
  auto Compute(const ExprNode& node) const -> std::optional<double> {
    const double a = node.operands.empty() ? 0 : Operand(node, 0).number;
    const double b = node.operands.size() < 2 ? 0 : Operand(node, 1).number;
    switch (node.kind) {
      case ExprNodeKind::Variable: return Variable(node);
      case ExprNodeKind::Negate: return -a;
      case ExprNodeKind::Add: return a + b;
      case ExprNodeKind::Subtract: return a - b;
      case ExprNodeKind::Multiply: return a * b;
      case ExprNodeKind::Divide: return b == 0 ? std::nullopt : std::optional(a / b);
      case ExprNodeKind::Modulo: return std::abs(a / b) < MostQuotient ? std::optional(Remainder(a, b)) : std::nullopt;
      case ExprNodeKind::Power: return expr_functions::Pow(Numbers(node));
      case ExprNodeKind::Less: return a < b;
      case ExprNodeKind::LessEqual: return a <= b;
      case ExprNodeKind::Greater: return a > b;
      case ExprNodeKind::GreaterEqual: return a >= b;
      case ExprNodeKind::Equal: return a == b;
      case ExprNodeKind::NotEqual: return a != b;
      case ExprNodeKind::Not: return a == 0;
      case ExprNodeKind::Call: return Function(node).evaluate(Numbers(node));
      case ExprNodeKind::Number:
      case ExprNodeKind::Bool:
      case ExprNodeKind::And:
      case ExprNodeKind::Or:
      case ExprNodeKind::If:
      case ExprNodeKind::Local:
      case ExprNodeKind::Parameter:
      case ExprNodeKind::Library:
      case ExprNodeKind::Broken: break;
    }
    CHECK(false, "`{}`: node kind {}", text_, static_cast<int>(node.kind));
  }

  /// Why an operation has no value: its rule, and its operands' values.
  auto Describe(const ExprNode& node) const -> std::string {
    if (node.kind == ExprNodeKind::Call || node.kind == ExprNodeKind::Library) {
      return DescribeCall(node);
    }
    if (node.kind == ExprNodeKind::Variable) {
      return fmt::format("{} {}", Quoted(TextOf(node, text_)), Variable(node) ? "is not finite" : "has no value here");
    }
    const double a = Operand(node, 0).number;
    const double b = Operand(node, 1).number;
    if ((node.kind == ExprNodeKind::Divide || node.kind == ExprNodeKind::Modulo) && b == 0) {
      return fmt::format("division by zero: {} is 0", Quoted(TextOf(tree_.nodes[node.operands[1]], text_)));
    }
    if (node.kind == ExprNodeKind::Modulo) {
      return fmt::format("`%` takes quotients below 2^53; here {} is divided by {}", a, b);
    }
    if (node.kind == ExprNodeKind::Power && a == 0) {
      return fmt::format("`^` of 0 takes powers of at least 0; the power is {}", b);
    }
    if (node.kind == ExprNodeKind::Power && a < 0 && b != std::trunc(b)) {
      return fmt::format("`^` of a negative number takes whole powers; here it is {} to the power {}", a, b);
    }
    return fmt::format("`{}` of {} and {} is not finite", SignOf(node, text_), a, b);
  }

  auto DescribeCall(const ExprNode& node) const -> std::string {
    const ExprFunctionRow& function = Function(node);
    const std::vector<double> numbers = Numbers(node, node.kind == ExprNodeKind::Library ? 2 : 0);
    const std::vector<std::string_view> names = ParameterNames(function);
    std::string values;
    for (size_t i = 0; i < numbers.size(); ++i) {
      values += fmt::format("{}{} is {}", i == 0 ? "" : ", ", names[i], numbers[i]);
    }
    if (!function.is_library() && function.evaluate(numbers)) {
      return fmt::format("`{}` is not finite; {}", function.name, values);
    }
    return fmt::format("`{}` takes {}; {}", function.name, function.domain, values);
  }

  const ExprTree& tree_;
  std::string_view text_;
  const ExprVariables& variables_;
  IdVector<ExprNodeId, Slot> slots_;
};

}  // namespace

auto EvaluateNumber(const Expr& expr, const ExprVariables& variables) -> ExprResult<double> {
  CHECK(expr.type() == ExprType::Number, "`{}` is a {}", expr.text(), ToText(expr.type()));
  const Evaluator evaluator(expr, variables);
  return {.value = evaluator.root().number, .errors = evaluator.Errors()};
}

auto EvaluateBool(const Expr& expr, const ExprVariables& variables) -> ExprResult<bool> {
  CHECK(expr.type() == ExprType::Bool, "`{}` is a {}", expr.text(), ToText(expr.type()));
  const Evaluator evaluator(expr, variables);
  return {.value = evaluator.root().number != 0, .errors = evaluator.Errors()};
}

auto EvaluateRule(const Expr& expr, const ExprVariables& variables) -> ExprResult<Distribution> {
  CHECK(expr.type() != ExprType::Bool, "`{}` is a {}", expr.text(), ToText(expr.type()));
  const Evaluator evaluator(expr, variables);
  std::vector<ExprError> errors = evaluator.Errors();
  if (!errors.empty()) {
    return {.value = {}, .errors = std::move(errors)};
  }
  return {.value = evaluator.Result(), .errors = {}};
}

}  // namespace shardc
