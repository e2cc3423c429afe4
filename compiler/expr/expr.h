// The expression language: one parser and type checker, one scalar evaluator. Rules, schedules, predicates and
// frequencies are expressions; which names and which functions each may use is its ExprKind.
//
// A rule or a frequency is evaluated in two steps. When a plan is made, everything known is put in (ReduceRule); what
// is left depends on the element, by index(i), by a draw, or by the element of another parameter, or of a
// checkpoint's tensor, that it copies (element.h).
//
// Grammar, loosest first:
//   expr    := 'let' name '=' expr 'in' expr | 'if' expr 'then' expr 'else' expr | or
//   or      := and ('or' and)*          and := not ('and' not)*          not := 'not' not | compare
//   compare := sum (('<' | '<=' | '>' | '>=' | '==' | '!=') sum)?
//   sum     := product (('+' | '-') product)*        product := unary (('*' | '/' | '%') unary)*
//   unary   := '-' unary | power        power := atom ('^' unary)?        (right-associative; -2^2 is -4)
//   atom    := number | name | name '(' (expr (',' expr)*)? ')' | ('copy' | 'seed') '(' text (',' expr)* ')'
//            | '(' expr ')'
// Numbers are decimal (12, 0.5, .5, 3e-4). A text, in " or ', is the name of a parameter or tensor; {expr} in it is a
// whole number. a % b is what floor division leaves, of the sign of b. Names are the rows of schemas/expr_names.def,
// schemas/init_functions.def and schemas/expr_library.def; the functions of the last are texts of this language, whose
// operations take the place of each call. A `let` names a value for the expression after `in`; a name has one meaning:
// it differs from every variable, constant and name of a `let` around it.
//
// `and`, `or` and `if` look only at the operands that they need: `layer > 0 and 1 / layer < 0.5` holds nowhere, but has
// a value everywhere. What a `let` names is looked at where the name is needed. Values are doubles, computed in the
// order written, so the same text gives the same bits.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/enum.h"

namespace shardc {

/// Longer texts, and texts with more levels of parentheses, calls, `if`, `not`, minus signs and powers inside one
/// another, are refused (expr-syntax), as are calls of library functions that take more operations together.
constexpr size_t MaxExprBytes = 64 * 1024;
constexpr int MaxExprDepth = 200;
constexpr int MaxExprOperations = 200'000;

/// Predicate: a condition over the sizes of the model. Schedule: a number over the step. Rule: a number or distribution
/// over the sizes of a parameter. Frequency: a number over the sizes of the model and the pair of the rotary embedding,
/// index(0). The variables of each are in schemas/expr_names.def.
enum class ExprKind { Predicate, Schedule, Rule, Frequency };
template <>
struct EnumNames<ExprKind> {
  static constexpr std::array<std::string_view, 4> names{"predicate", "schedule", "init rule", "frequency"};
};

/// Distribution: a number that each element draws for itself. It may stand wherever a number may.
enum class ExprType { Number, Bool, Distribution };
template <>
struct EnumNames<ExprType> {
  static constexpr std::array<std::string_view, 3> names{"number", "condition", "distribution"};
};

enum class DistributionKind {
  Constant,
#define DISTRIBUTION(Name, name, parameters, domain, doc, source) Name,
#include "schemas/init_functions.def"
};
template <>
struct EnumNames<DistributionKind> {
  static constexpr std::array names{
      std::string_view("constant"),
#define DISTRIBUTION(Name, name, parameters, domain, doc, source) std::string_view(#name),
#include "schemas/init_functions.def"
  };
};

/// The law that an init rule draws from, if it is one draw or number. Constant: {value}. Normal: {mean, std}.
/// TruncNormal: {mean, std, a, b}, bounds absolute. Uniform: {a, b}.
struct Distribution {
  DistributionKind kind = DistributionKind::Constant;
  std::vector<double> arguments;

  friend auto operator==(const Distribution&, const Distribution&) -> bool = default;
};
/// Returns "normal(0, 0.02)", "1": the shortest text that reads back to the same doubles.
auto ToText(const Distribution& distribution) -> std::string;

/// A fault in an expression: `column` counts bytes from 1 in its text; `name` is the diagnostic's kebab-case name
/// (expr-syntax, expr-unknown-name, expr-name-taken, expr-type, expr-argument-count, expr-domain).
struct ExprError {
  std::string name;
  std::string message;
  int column = 1;
  int length = 1;
  /// Nearest known word, or empty.
  std::string closest;
  /// Text of the divisor of a division by zero; otherwise empty.
  std::string divisor;
  /// True if the divisor, or the domain of a function, is made of the variable `steps`.
  bool reads_steps = false;
};

struct ExprTree;

/// A parsed and type-checked expression. Copyable; immutable. One made by default has no type and no value.
class Expr {
 public:
  auto type() const -> ExprType;
  auto text() const -> const std::string& { return text_; }

 private:
  friend struct ExprAccess;
  std::string text_;
  std::shared_ptr<const ExprTree> tree_;
};

template <class T>
struct ExprResult {
  T value{};
  std::vector<ExprError> errors;

  auto ok() const -> bool { return errors.empty(); }
};

using ExprVariables = std::map<std::string, double, std::less<>>;

/// Parses and type-checks. Errors: expr-syntax, expr-unknown-name, expr-name-taken, expr-argument-count, expr-type, and
/// expr-domain for a literal beyond the doubles: every fault found, in text order.
auto ParseExpr(std::string_view text, ExprKind kind) -> ExprResult<Expr>;

/// Returns true if the value may depend on this variable.
auto UsesVariable(const Expr& expr, std::string_view name) -> bool;

/// Evaluates with the variables of its kind: a number for a schedule, a condition for a predicate.
/// Requires: the type fits; the expression is neither a rule nor a frequency.
/// Errors: expr-domain, with the place of the operation, function or variable: a division by zero, arguments outside a
///   function's domain, a power without a real value, a result that is not finite, a variable that `variables` lacks
///   (`layer` outside the blocks). Only the first that the value depends on.
auto EvaluateNumber(const Expr& expr, const ExprVariables& variables) -> ExprResult<double>;
auto EvaluateBool(const Expr& expr, const ExprVariables& variables) -> ExprResult<bool>;

/// Returns the rule with everything known put in, in its shortest text: "normal(0, 0.02)", "index(0) ^ 2". Reduces a
/// frequency in the same way.
/// Requires: a rule or a frequency.
/// Errors: as above, for operations that do not depend on the element, and for operations that every element needs.
auto ReduceRule(const Expr& rule, const ExprVariables& variables) -> ExprResult<Expr>;

/// Returns the law of a reduced rule, if the rule is one draw whose arguments are known, or a number; else nothing.
auto DistributionOf(const Expr& rule) -> std::optional<Distribution>;

/// A rule that is `seed('name')` or `seed('name', index(0) + 24, index(1))` alone: each element is one of a block of
/// the tensor.
struct LoadedBlock {
  /// An index of the tensor: index(`of`) + `begin`.
  struct Index {
    size_t of = 0;
    int64_t begin = 0;
  };

  std::string tensor;
  /// Empty if the tensor is loaded whole.
  std::vector<Index> indices;
};
/// Returns the block of a reduced rule; nothing if it is another rule.
auto LoadedBlockOf(const Expr& rule) -> std::optional<LoadedBlock>;
/// Returns the rule that loads every element from the tensor.
auto RuleOfLoaded(std::string_view tensor) -> std::string;

}  // namespace shardc
