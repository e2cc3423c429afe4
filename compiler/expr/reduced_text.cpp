// The rest of a rule when everything known is put in.
#include <map>

#include "compiler/base/check.h"
#include "compiler/expr/evaluator.h"
#include "compiler/expr/names.h"

namespace shardc {

namespace {

/// How tightly a text binds, as in the grammar's lines; the looser the smaller.
enum Binding {
  LooseBinding,
  OrBinding,
  AndBinding,
  NotBinding,
  CompareBinding,
  SumBinding,
  ProductBinding,
  UnaryBinding,
  PowerBinding,
  AtomBinding
};

struct Printed {
  std::string text;
  Binding binding = AtomBinding;
};

/// An operation between two texts: how tightly it binds, and the loosest that each side may.
struct InfixRow {
  ExprNodeKind kind;
  std::string_view sign;
  Binding own;
  Binding left;
  Binding right;
};

constexpr InfixRow Infixes[] = {
    {ExprNodeKind::Or, "or", OrBinding, OrBinding, AndBinding},
    {ExprNodeKind::And, "and", AndBinding, AndBinding, NotBinding},
    {ExprNodeKind::Less, "<", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::LessEqual, "<=", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::Greater, ">", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::GreaterEqual, ">=", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::Equal, "==", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::NotEqual, "!=", CompareBinding, SumBinding, SumBinding},
    {ExprNodeKind::Add, "+", SumBinding, SumBinding, ProductBinding},
    {ExprNodeKind::Subtract, "-", SumBinding, SumBinding, ProductBinding},
    {ExprNodeKind::Multiply, "*", ProductBinding, ProductBinding, UnaryBinding},
    {ExprNodeKind::Divide, "/", ProductBinding, ProductBinding, UnaryBinding},
    {ExprNodeKind::Modulo, "%", ProductBinding, ProductBinding, UnaryBinding},
    {ExprNodeKind::Power, "^", PowerBinding, AtomBinding, UnaryBinding},
};

class Printer {
 public:
  explicit Printer(const Evaluator& evaluator) : evaluator_(evaluator) {}

  auto Run() -> std::string {
    CountUses(evaluator_.tree().root());
    const Printed body = Print(evaluator_.tree().root());
    return lets_ + body.text;
  }

 private:
  auto Node(ExprNodeId id) const -> const ExprNode& { return evaluator_.tree().nodes[id]; }

  /// Returns the node whose value this one has.
  auto Resolve(ExprNodeId id) const -> ExprNodeId {
    while (true) {
      const ExprNode& node = Node(id);
      if (const auto choice = evaluator_.Choice(node)) {
        id = node.operands[*choice];
      } else if (node.kind == ExprNodeKind::Library && IsKnown(node.operands[0])) {
        id = node.operands[1];
      } else {
        return id;
      }
    }
  }

  auto IsKnown(ExprNodeId id) const -> bool { return !evaluator_.slot(id).varies; }

  /// Returns the operands of a node that matter: of a call in a library's text, only domain and body.
  auto Operands(const ExprNode& node) const -> std::vector<ExprNodeId> {
    return node.kind == ExprNodeKind::Library ? std::vector(node.operands.begin(), node.operands.begin() + 2)
                                              : node.operands;
  }

  auto CountUses(ExprNodeId at) -> void {
    std::vector<ExprNodeId> open{at};
    while (!open.empty()) {
      const ExprNodeId id = Resolve(open.back());
      open.pop_back();
      if (!IsKnown(id) && ++uses_[id] == 1) {
        const std::vector<ExprNodeId> operands = Operands(Node(id));
        open.insert(open.end(), operands.begin(), operands.end());
      }
    }
  }

  auto Print(ExprNodeId at) -> Printed {
    const ExprNodeId id = Resolve(at);
    const ExprNode& node = Node(id);
    if (IsKnown(id)) {
      return PrintKnown(node, evaluator_.slot(id).number);
    }
    if (const auto named = names_.find(id); named != names_.end()) {
      return {named->second};
    }
    Printed printed = PrintOperation(node);
    const bool is_index =
        node.kind == ExprNodeKind::Call && ExprFunctionRows()[static_cast<size_t>(node.row)].Is(ElementFunction::Index);
    if (uses_[id] == 1 || is_index) {
      return printed;
    }
    const std::string name = fmt::format("t{}", names_.size());
    names_[id] = name;
    lets_ += fmt::format("let {} = {} in ", name, printed.text);
    return {name};
  }

  static auto PrintKnown(const ExprNode& node, double number) -> Printed {
    switch (node.kind) {
      case ExprNodeKind::Bool:
      case ExprNodeKind::Less:
      case ExprNodeKind::LessEqual:
      case ExprNodeKind::Greater:
      case ExprNodeKind::GreaterEqual:
      case ExprNodeKind::Equal:
      case ExprNodeKind::NotEqual:
      case ExprNodeKind::Not: return {number != 0 ? "true" : "false"};
      default: return {fmt::format("{}", number), number < 0 ? UnaryBinding : AtomBinding};
    }
  }

  auto Within(ExprNodeId id, Binding loosest) -> std::string {
    const Printed printed = Print(id);
    return printed.binding < loosest ? "(" + printed.text + ")" : printed.text;
  }

  auto Arguments(const ExprNode& node, size_t first) -> std::string {
    std::string text;
    for (size_t i = first; i < node.operands.size(); ++i) {
      text += (text.empty() ? "" : ", ") + Print(node.operands[i]).text;
    }
    return text;
  }

  auto PrintOperation(const ExprNode& node) -> Printed {
    for (const InfixRow& row : Infixes) {
      if (row.kind == node.kind) {
        const std::string left = Within(node.operands[0], row.left);
        const std::string right = Within(node.operands[1], row.right);
        return {fmt::format("{} {} {}", left, row.sign, right), row.own};
      }
    }
    switch (node.kind) {
      case ExprNodeKind::Negate: return {"-" + Within(node.operands[0], PowerBinding), UnaryBinding};
      case ExprNodeKind::Not: return {"not " + Within(node.operands[0], CompareBinding), NotBinding};
      case ExprNodeKind::If: {
        const std::string condition = Print(node.operands[0]).text;
        const std::string yes = Print(node.operands[1]).text;
        return {fmt::format("if {} then {} else {}", condition, yes, Print(node.operands[2]).text), LooseBinding};
      }
      case ExprNodeKind::Library: {
        // Outside its domain it has no value.
        const std::string domain = Print(node.operands[0]).text;
        return {fmt::format("if {} then {} else none()", domain, Print(node.operands[1]).text), LooseBinding};
      }
      case ExprNodeKind::Call:
        return {fmt::format("{}({})", ExprFunctionRows()[static_cast<size_t>(node.row)].name, Arguments(node, 0))};
      case ExprNodeKind::Copy: {
        std::string name = node.texts.front();
        for (size_t i = 1; i < node.texts.size(); ++i) {
          name += fmt::format("{}{}", evaluator_.slot(node.operands[i - 1]).number, node.texts[i]);
        }
        const std::string indices = Arguments(node, node.texts.size() - 1);
        return {fmt::format("{}('{}'{}{})", ExprFunctionRows()[static_cast<size_t>(node.row)].name, name,
                            indices.empty() ? "" : ", ", indices)};
      }
      default: CHECK(false, "node kind {}", static_cast<int>(node.kind));
    }
  }

  const Evaluator& evaluator_;
  std::map<ExprNodeId, int> uses_;
  /// Names of values that are used more than once.
  std::map<ExprNodeId, std::string> names_;
  std::string lets_;
};

}  // namespace

/// Returns a text of the language with the same value at every element: known numbers in their shortest form, a `let`
/// for each value that is used more than once, parentheses where the grammar needs them.
/// Requires: the root has no fault.
static auto ReducedText(const Evaluator& evaluator) -> std::string { return Printer(evaluator).Run(); }

auto ReduceRule(const Expr& rule, const ExprVariables& variables) -> ExprResult<Expr> {
  CHECK(rule.type() != ExprType::Bool, "`{}` is a {}", rule.text(), ToText(rule.type()));
  const Evaluator evaluator(rule, variables);
  if (auto errors = evaluator.Errors(); !errors.empty()) {
    return {.value = {}, .errors = std::move(errors)};
  }
  return ParseExpr(ReducedText(evaluator), evaluator.tree().kind);
}

}  // namespace shardc
