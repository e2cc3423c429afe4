// Evaluates every node in one loop, operands first. A node without a value keeps the fault that took it, and passes it
// on to the nodes that need it; `if`, `and`, `or` and functions drop the faults of operands that they do not need, so
// the result is that of evaluating only what is needed.
//
// In a rule or a frequency a node's value may vary from element to element. Then it has none here; ReduceRule writes
// down what is left of it (reduced_text.cpp).

#include "compiler/expr/evaluator.h"

#include <array>
#include <cmath>
#include <span>

#include "compiler/base/check.h"
#include "compiler/expr/function_values.h"
#include "compiler/expr/lexer.h"

namespace shardc {

/// Arguments of a function that is evaluated from numbers. They stay on the stack: a schedule is evaluated at every
/// step.
constexpr size_t MostArguments = 8;

Evaluator::Evaluator(const Expr& expr, const ExprVariables& variables)
    : tree_(ExprAccess::Tree(expr)), text_(expr.text()), variables_(variables) {
  for (const ExprNodeId id : tree_.nodes.ids()) {
    slots_.Add(Evaluate(id));
  }
}

auto Evaluator::Update(const std::vector<ExprNodeId>& nodes) -> void {
  for (const ExprNodeId id : nodes) {
    slots_[id] = Evaluate(id);
  }
}

auto Evaluator::Errors() const -> std::vector<ExprError> {
  if (!root().fault.valid()) {
    return {};
  }
  const ExprNode& node = tree_.nodes[root().fault];
  const std::string within =
      node.library < 0 ? "" : fmt::format("in `{}`, ", ExprFunctionRows()[static_cast<size_t>(node.library)].name);
  ExprError error = ErrorAt(node.place_begin, node.place_end, "expr-domain", within + Describe(node));
  if (IsDivisionByZero(node)) {
    error.divisor = TextOf(tree_.nodes[node.operands[1]], text_);
    error.reads_steps = Reads(node.operands[1], "steps");
  } else if (node.kind == ExprNodeKind::Library) {
    error.reads_steps = Reads(node.operands[0], "steps");
  }
  return {std::move(error)};
}

auto Evaluator::IsDivisionByZero(const ExprNode& node) const -> bool {
  return (node.kind == ExprNodeKind::Divide || node.kind == ExprNodeKind::Modulo) && Operand(node, 1).number == 0;
}

auto Evaluator::Reads(ExprNodeId id, std::string_view variable) const -> bool {
  std::vector<ExprNodeId> waiting{id};
  while (!waiting.empty()) {
    const ExprNode& node = tree_.nodes[waiting.back()];
    waiting.pop_back();
    if (node.kind == ExprNodeKind::Variable && TextOfVariable(node) == variable) {
      return true;
    }
    if (node.kind != ExprNodeKind::Local && node.kind != ExprNodeKind::Parameter) {
      waiting.insert(waiting.end(), node.operands.begin(), node.operands.end());
    }
  }
  return false;
}

auto Evaluator::Function(const ExprNode& call) -> const ExprFunctionRow& {
  return ExprFunctionRows()[static_cast<size_t>(call.row)];
}

auto Evaluator::Numbers(const ExprNode& node, size_t first) const -> std::vector<double> {
  std::vector<double> numbers;
  numbers.reserve(node.operands.size());
  for (size_t i = first; i < node.operands.size(); ++i) {
    numbers.push_back(Operand(node, i).number);
  }
  return numbers;
}

auto Evaluator::Variable(std::string_view name) const -> std::optional<double> {
  const auto found = variables_.find(name);
  return found == variables_.end() ? std::nullopt : std::optional(found->second);
}

auto Evaluator::Choice(const ExprNode& node) const -> std::optional<size_t> {
  switch (node.kind) {
    case ExprNodeKind::Local:
    case ExprNodeKind::Parameter: return 0;
    case ExprNodeKind::And:
    case ExprNodeKind::Or: {
      const Slot& left = Operand(node, 0);
      if (left.varies) {
        return std::nullopt;
      }
      return left.fault.valid() || (left.number != 0) == (node.kind == ExprNodeKind::Or) ? 0 : 1;
    }
    case ExprNodeKind::If: {
      const Slot& condition = Operand(node, 0);
      if (condition.varies) {
        return std::nullopt;
      }
      return condition.fault.valid() ? 0 : condition.number != 0 ? 1 : 2;
    }
    default: return std::nullopt;
  }
}

auto Evaluator::Evaluate(ExprNodeId own) const -> Slot {
  const ExprNode& node = tree_.nodes[own];
  switch (node.kind) {
    case ExprNodeKind::Number:
    case ExprNodeKind::Bool: return {.number = node.number, .fault = {}};
    case ExprNodeKind::Local:
    case ExprNodeKind::Parameter:
    case ExprNodeKind::And:
    case ExprNodeKind::Or:
    case ExprNodeKind::If: {
      const auto choice = Choice(node);
      return choice ? Operand(node, *choice) : VaryingChoice(node);
    }
    case ExprNodeKind::Library: {
      const Slot& domain = Operand(node, 0);
      if (domain.varies) {
        return VaryingChoice(node);
      }
      return domain.fault.valid() ? domain : domain.number != 0 ? Operand(node, 1) : Slot{.fault = own};
    }
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
    case ExprNodeKind::Call:
    case ExprNodeKind::Copy: return EvaluateStrict(own);
    case ExprNodeKind::Broken: break;
  }
  CHECK(false, "`{}`: node kind {}", text_, static_cast<int>(node.kind));
}

/// Evaluates a choice that elements make. An operand that is known to have no value is a fault, whether or not an
/// element chooses it.
auto Evaluator::VaryingChoice(const ExprNode& node) const -> Slot {
  const size_t num_operands = node.kind == ExprNodeKind::Library ? 2 : node.operands.size();
  for (size_t i = 0; i < num_operands; ++i) {
    if (Operand(node, i).fault.valid()) {
      return Operand(node, i);
    }
  }
  return {.varies = true, .fault = {}};
}

/// Evaluates an operation that needs all its operands.
auto Evaluator::EvaluateStrict(ExprNodeId own) const -> Slot {
  const ExprNode& node = tree_.nodes[own];
  bool varies = false;
  for (const ExprNodeId operand : node.operands) {
    if (slots_[operand].fault.valid()) {
      return slots_[operand];
    }
    varies = varies || slots_[operand].varies;
  }
  const bool is_of_element = node.kind == ExprNodeKind::Copy ||
                             (node.kind == ExprNodeKind::Call && Function(node).kind == ExprFunctionKind::Element);
  if (is_of_element) {
    return HasElementDomain(node) ? Slot{.varies = true, .fault = {}} : Slot{.fault = own};
  }
  if (varies) {
    return {.varies = true, .fault = {}};
  }
  const auto number = Compute(node);
  if (!number || !std::isfinite(*number)) {
    return {.fault = own};
  }
  const bool is_draw = node.kind == ExprNodeKind::Call && Function(node).kind == ExprFunctionKind::Distribution;
  return {.number = *number, .varies = is_draw, .fault = {}};
}

/// Returns true if the known operands of a function of the element are valid: dims that the parameter has, and whole
/// numbers in names.
auto Evaluator::HasElementDomain(const ExprNode& node) const -> bool {
  if (node.kind == ExprNodeKind::Copy) {
    for (size_t i = 0; i + 1 < node.texts.size(); ++i) {
      if (Operand(node, i).varies || Operand(node, i).number != std::trunc(Operand(node, i).number)) {
        return false;
      }
    }
    return true;
  }
  if (!Function(node).Is(ElementFunction::Index)) {
    return true;
  }
  const Slot& dim = Operand(node, 0);
  const double num_dims = tree_.kind == ExprKind::Frequency ? 1 : Variable("num_dims").value_or(2);
  return !dim.varies && (dim.number == 0 || (dim.number == 1 && num_dims == 2));
}

/// Returns the result of an operation; nothing outside its domain. Division by zero and powers without a real value
/// give numbers that are not finite.
auto Evaluator::Compute(const ExprNode& node) const -> std::optional<double> {
  const double a = node.operands.empty() ? 0 : Operand(node, 0).number;
  const double b = node.operands.size() < 2 ? 0 : Operand(node, 1).number;
  switch (node.kind) {
    case ExprNodeKind::Variable: return Variable(TextOfVariable(node));
    case ExprNodeKind::Negate: return -a;
    case ExprNodeKind::Add: return a + b;
    case ExprNodeKind::Subtract: return a - b;
    case ExprNodeKind::Multiply: return a * b;
    case ExprNodeKind::Divide: return b == 0 ? std::nullopt : std::optional(a / b);
    case ExprNodeKind::Modulo: return ValueIn(ComputeRemainder(a, b));
    case ExprNodeKind::Power: return EvaluateFunction(ExprFunction::Pow, std::array{a, b});
    case ExprNodeKind::Less: return a < b;
    case ExprNodeKind::LessEqual: return a <= b;
    case ExprNodeKind::Greater: return a > b;
    case ExprNodeKind::GreaterEqual: return a >= b;
    case ExprNodeKind::Equal: return a == b;
    case ExprNodeKind::NotEqual: return a != b;
    case ExprNodeKind::Not: return a == 0;
    case ExprNodeKind::Call: {
      std::array<double, MostArguments> numbers{};
      CHECK(node.operands.size() <= numbers.size(), "`{}` takes {} numbers", Function(node).name, node.operands.size());
      for (size_t i = 0; i < node.operands.size(); ++i) {
        numbers[i] = Operand(node, i).number;
      }
      return Function(node).evaluate(std::span(numbers).first(node.operands.size()));
    }
    case ExprNodeKind::Number:
    case ExprNodeKind::Bool:
    case ExprNodeKind::And:
    case ExprNodeKind::Or:
    case ExprNodeKind::If:
    case ExprNodeKind::Local:
    case ExprNodeKind::Parameter:
    case ExprNodeKind::Library:
    case ExprNodeKind::Copy:
    case ExprNodeKind::Broken: break;
  }
  CHECK(false, "`{}`: node kind {}", text_, static_cast<int>(node.kind));
}

/// Returns why an operation has no value: its rule, and its operands' values.
auto Evaluator::Describe(const ExprNode& node) const -> std::string {
  if (node.kind == ExprNodeKind::Call || node.kind == ExprNodeKind::Library) {
    return DescribeCall(node);
  }
  if (node.kind == ExprNodeKind::Variable) {
    return fmt::format("{} {}", Quoted(TextOf(node, text_)),
                       Variable(TextOfVariable(node)) ? "is not finite" : "has no value here");
  }
  if (node.kind == ExprNodeKind::Copy) {
    return "numbers in the name of a parameter are whole and the same for every element";
  }
  const double a = Operand(node, 0).number;
  const double b = Operand(node, 1).number;
  if (IsDivisionByZero(node)) {
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

auto Evaluator::DescribeCall(const ExprNode& node) const -> std::string {
  const ExprFunctionRow& function = Function(node);
  const std::vector<double> numbers = Numbers(node, node.kind == ExprNodeKind::Library ? 2 : 0);
  const std::vector<std::string_view> names = ParameterNames(function);
  std::string values;
  for (size_t i = 0; i < numbers.size(); ++i) {
    values += fmt::format("{}{} is {}", i == 0 ? "" : ", ", names[i], numbers[i]);
  }
  if (function.evaluate != nullptr && function.evaluate(numbers)) {
    return fmt::format("`{}` is not finite; {}", function.name, values);
  }
  return fmt::format("`{}` takes {}; {}", function.name, function.domain, values);
}

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

auto DistributionOf(const Expr& rule) -> std::optional<Distribution> {
  const ExprTree& tree = ExprAccess::Tree(rule);
  const ExprNode& root = tree.nodes[tree.root()];
  if (root.kind == ExprNodeKind::Number) {
    return Distribution{.kind = DistributionKind::Constant, .arguments = {root.number}};
  }
  if (root.kind != ExprNodeKind::Call) {
    return std::nullopt;
  }
  const ExprFunctionRow& function = ExprFunctionRows()[static_cast<size_t>(root.row)];
  if (function.kind != ExprFunctionKind::Distribution) {
    return std::nullopt;
  }
  Distribution distribution{.kind = function.distribution, .arguments = {}};
  for (const ExprNodeId operand : root.operands) {
    if (tree.nodes[operand].kind != ExprNodeKind::Number) {
      return std::nullopt;
    }
    distribution.arguments.push_back(tree.nodes[operand].number);
  }
  return distribution;
}

auto LoadedBlockOf(const Expr& rule) -> std::optional<LoadedBlock> {
  constexpr double MostBegin = 0x1p53;
  const ExprTree& tree = ExprAccess::Tree(rule);
  const auto calls = [](const ExprNode& node, ExprNodeKind kind, ElementFunction function) {
    return node.kind == kind && ExprFunctionRows()[static_cast<size_t>(node.row)].Is(function);
  };
  const ExprNode& root = tree.nodes[tree.root()];
  if (!calls(root, ExprNodeKind::Copy, ElementFunction::Seed)) {
    return std::nullopt;
  }
  LoadedBlock block{.tensor = root.texts.front(), .indices = {}};
  for (const ExprNodeId operand : root.operands) {
    const ExprNode* node = &tree.nodes[operand];
    double begin = 0;
    if (node->kind == ExprNodeKind::Add && tree.nodes[node->operands[1]].kind == ExprNodeKind::Number) {
      begin = tree.nodes[node->operands[1]].number;
      node = &tree.nodes[node->operands[0]];
    }
    if (!calls(*node, ExprNodeKind::Call, ElementFunction::Index) ||
        tree.nodes[node->operands[0]].kind != ExprNodeKind::Number || begin != std::floor(begin) || begin > MostBegin) {
      return std::nullopt;
    }
    block.indices.push_back({static_cast<size_t>(tree.nodes[node->operands[0]].number), static_cast<int64_t>(begin)});
  }
  return block;
}

auto RuleOfLoaded(std::string_view tensor) -> std::string { return fmt::format("seed('{}')", tensor); }

}  // namespace shardc
