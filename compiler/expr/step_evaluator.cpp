#include "compiler/expr/step_evaluator.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "compiler/base/ids.h"
#include "compiler/expr/evaluator.h"
#include "compiler/expr/names.h"
#include "compiler/expr/tree.h"

namespace shardc {

/// Returns the nodes whose value may differ between steps, operands first.
static auto NodesOverStep(const ExprTree& tree) -> std::vector<ExprNodeId> {
  std::vector<ExprNodeId> nodes;
  IdVector<ExprNodeId, uint8_t> depends;
  for (const ExprNodeId id : tree.nodes.ids()) {
    const ExprNode& node = tree.nodes[id];
    const bool is_step =
        node.kind == ExprNodeKind::Variable && ExprVariableRows()[static_cast<size_t>(node.row)].name == "step";
    depends.Add(is_step || std::any_of(node.operands.begin(), node.operands.end(),
                                       [&](ExprNodeId operand) { return depends[operand] != 0; }));
    if (depends[id] != 0) {
      nodes.push_back(id);
    }
  }
  return nodes;
}

struct StepEvaluator::State {
  State(Expr schedule, RunSteps steps)
      : expr(std::move(schedule)),
        first(steps.first),
        variables{{"step", 0.0}, {"steps", static_cast<double>(steps.all())}},
        step(&variables.find("step")->second),
        over_step(NodesOverStep(ExprAccess::Tree(expr))),
        evaluator(expr, variables) {}

  Expr expr;
  int64_t first;
  ExprVariables variables;
  double* step;
  std::vector<ExprNodeId> over_step;
  Evaluator evaluator;
};

StepEvaluator::StepEvaluator(Expr schedule, RunSteps steps)
    : state_(std::make_unique<State>(std::move(schedule), steps)) {
  CHECK(state_->expr.type() == ExprType::Number, "`{}` is a {}", state_->expr.text(), ToText(state_->expr.type()));
}

StepEvaluator::~StepEvaluator() = default;
StepEvaluator::StepEvaluator(StepEvaluator&& other) noexcept = default;
auto StepEvaluator::operator=(StepEvaluator&& other) noexcept -> StepEvaluator& = default;

auto StepEvaluator::is_constant() const -> bool { return state_->over_step.empty(); }

auto StepEvaluator::At(int64_t step) -> ExprResult<double> {
  *state_->step = static_cast<double>(state_->first + step);
  state_->evaluator.Update(state_->over_step);
  return {.value = state_->evaluator.root().number, .errors = state_->evaluator.Errors()};
}

}  // namespace shardc
