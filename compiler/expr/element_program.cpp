#include "compiler/expr/element_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/base/check.h"
#include "compiler/base/mapped.h"
#include "compiler/expr/lexer.h"
#include "compiler/expr/names.h"

namespace shardc {

auto ElementProgram::is_draw() const -> bool {
  const ElementOp& op = ops[static_cast<size_t>(root)];
  const bool draws = op.kind == ElementOpKind::DrawNormal || op.kind == ElementOpKind::DrawUniform ||
                     op.kind == ElementOpKind::DrawTruncNormal || op.kind == ElementOpKind::DrawTailNormal;
  return draws && op.operands.empty() && op.position < 0;
}

auto ElementProgram::Shape() const -> std::string {
  std::string shape = fmt::format("{}:", root);
  for (const ElementOp& op : ops) {
    shape += fmt::format("{}.{}.{}({}){},{},{},{},{};", static_cast<int>(op.kind), static_cast<int>(op.operation),
                         static_cast<int>(op.function), fmt::join(op.operands, " "), op.slot, op.position, op.stream,
                         op.draw, op.to_bfloat16);
  }
  return shape;
}

auto ElementProgram::NeededBy(int root) const -> std::vector<bool> {
  std::vector<bool> is_needed(ops.size(), false);
  is_needed[static_cast<size_t>(root)] = true;
  for (auto i = static_cast<size_t>(root) + 1; i-- > 0;) {
    const ElementOp& op = ops[i];
    for (const int operand : op.operands) {
      is_needed[static_cast<size_t>(operand)] = is_needed[static_cast<size_t>(operand)] || is_needed[i];
    }
    if (op.position >= 0 && is_needed[i]) {
      is_needed[static_cast<size_t>(op.position)] = true;
    }
  }
  return is_needed;
}

auto NoValueText(const ElementSource& parameter, int64_t element) -> std::string {
  const int64_t row_size = parameter.shape.back();
  const std::string indices = parameter.shape.size() == 1
                                  ? fmt::format("{}", element)
                                  : fmt::format("{}, {}", element / row_size, element % row_size);
  return fmt::format("`{}` has no value at element [{}]", parameter.rule.text(), indices);
}

namespace {

class Linker {
 public:
  Linker(const FindElementSource& find, const FindLoadedShape& find_loaded) : find_(find), find_loaded_(find_loaded) {}

  auto Run(const ElementSource& parameter) -> ExprResult<ElementProgram> {
    program_.row_size = parameter.shape.back();
    program_.root = Add(parameter, -1);
    return {.value = std::move(program_), .errors = std::move(errors_)};
  }

 private:
  auto Emit(ElementOp op) -> int {
    const auto is_of_loaded = [&](int other) { return other >= 0 && is_of_loaded_[static_cast<size_t>(other)]; };
    is_of_loaded_.push_back(op.kind == ElementOpKind::Loaded || is_of_loaded(op.position) ||
                            std::any_of(op.operands.begin(), op.operands.end(), is_of_loaded));
    program_.ops.push_back(std::move(op));
    return static_cast<int>(program_.ops.size()) - 1;
  }

  template <class... Numbers>
  auto Slot(Numbers... numbers) -> int {
    const auto slot = static_cast<int>(program_.numbers.size());
    (program_.numbers.push_back(numbers), ...);
    return slot;
  }

  auto EmitNumber(double number) -> int { return Emit({.kind = ElementOpKind::Number, .slot = Slot(number)}); }

  auto EmitOperation(ExprNodeKind operation, std::vector<int> operands) -> int {
    return Emit({.kind = ElementOpKind::Operation, .operation = operation, .operands = std::move(operands)});
  }

  auto Fail(const ExprNode& node, std::string message) -> int {
    errors_.push_back(ErrorAt(node.place_begin, node.place_end, "expr-domain", std::move(message)));
    return Emit({.kind = ElementOpKind::None});
  }

  /// Adds the element of `parameter` whose number instruction `position` has. Returns the instruction with its value.
  auto Add(const ElementSource& parameter, int position) -> int {
    const auto stream = static_cast<int>(program_.keys.size());
    program_.keys.push_back(parameter.key);
    around_.push_back(&parameter);
    const ExprTree& tree = ExprAccess::Tree(parameter.rule);
    IdVector<ExprNodeId, int> instructions;
    int num_draws = 0;
    for (const ExprNode& node : tree.nodes) {
      auto operands = Mapped<int>(node.operands, [&](const ExprNodeId operand) { return instructions[operand]; });
      const bool is_draw = node.kind == ExprNodeKind::Call && Function(node).kind == ExprFunctionKind::Distribution;
      instructions.Add(AddNode(node, tree, std::move(operands), position, stream, num_draws));
      num_draws += is_draw ? 1 : 0;
    }
    around_.pop_back();
    return instructions[tree.root()];
  }

  static auto Function(const ExprNode& call) -> const ExprFunctionRow& {
    return ExprFunctionRows()[static_cast<size_t>(call.row)];
  }

  /// Returns true for kinds that the reduction of a rule replaces by others.
  static auto IsReplaced(ExprNodeKind kind) -> bool {
    return kind == ExprNodeKind::Variable || kind == ExprNodeKind::Parameter || kind == ExprNodeKind::Library ||
           kind == ExprNodeKind::Broken;
  }

  auto AddNode(const ExprNode& node, const ExprTree& tree, std::vector<int> operands, int position, int stream,
               int draw) -> int {
    CHECK(!IsReplaced(node.kind), "a rule that is not reduced");
    switch (node.kind) {
      case ExprNodeKind::Number:
      case ExprNodeKind::Bool: return EmitNumber(node.number);
      case ExprNodeKind::Local: return operands[0];
      case ExprNodeKind::Copy:
        return Function(node).Is(ElementFunction::Copy) ? AddCopy(node, operands, position)
                                                        : AddLoaded(node, operands, position);
      case ExprNodeKind::Call: break;
      default: return EmitOperation(node.kind, std::move(operands));
    }
    const ExprFunctionRow& function = Function(node);
    switch (function.kind) {
      case ExprFunctionKind::Number:
        return Emit({.kind = ElementOpKind::Function, .function = function.function, .operands = std::move(operands)});
      case ExprFunctionKind::Distribution: {
        ElementOp op = DrawOf(node, tree, std::move(operands));
        op.position = position;
        op.stream = stream;
        op.draw = draw;
        return Emit(std::move(op));
      }
      case ExprFunctionKind::Element: return AddElementFunction(node, tree, operands, position);
      case ExprFunctionKind::Library: break;
    }
    CHECK(false, "`{}`", function.name);
  }

  /// Returns a draw, with the parts of its law if its arguments are known.
  auto DrawOf(const ExprNode& node, const ExprTree& tree, std::vector<int> operands) -> ElementOp {
    std::vector<double> known;
    for (const ExprNodeId operand : node.operands) {
      if (tree.nodes[operand].kind == ExprNodeKind::Number) {
        known.push_back(tree.nodes[operand].number);
      }
    }
    const bool is_known = known.size() == operands.size();
    const auto with_slot = [&](ElementOpKind kind, auto... parts) {
      return ElementOp{.kind = kind, .slot = Slot(parts...)};
    };
    switch (Function(node).distribution) {
      case DistributionKind::Normal:
        return is_known ? with_slot(ElementOpKind::DrawNormal, known[0], known[1])
                        : ElementOp{.kind = ElementOpKind::DrawNormal, .operands = std::move(operands)};
      case DistributionKind::Uniform: {
        if (!is_known) {
          return {.kind = ElementOpKind::DrawUniform, .operands = std::move(operands)};
        }
        const auto law = UniformLaw<float>::Of(known[0], known[1]);
        return with_slot(ElementOpKind::DrawUniform, law.middle, law.half, law.low, law.high);
      }
      case DistributionKind::TruncNormal: {
        if (!is_known) {
          return {.kind = ElementOpKind::DrawTruncNormal, .operands = std::move(operands)};
        }
        if (IsTail(known[0], known[2], known[3])) {
          const auto law = TailNormalLaw<double, float>::Of(known[0], known[1], known[2], known[3]);
          return with_slot(ElementOpKind::DrawTailNormal, law.mean, law.std, law.side, law.from, law.width, law.nearest,
                           law.low, law.high);
        }
        const auto law = TruncNormalLaw<float>::Of(known[0], known[1], known[2], known[3]);
        return with_slot(ElementOpKind::DrawTruncNormal, law.mean, law.std, law.middle, law.half, law.low, law.high);
      }
      case DistributionKind::Constant: break;
    }
    CHECK(false, "`{}`", Function(node).name);
  }

  auto AddElementFunction(const ExprNode& node, const ExprTree& tree, const std::vector<int>& operands, int position)
      -> int {
    const std::vector<int64_t>& shape = around_.back()->shape;
    switch (Function(node).element) {
      case ElementFunction::None: return Emit({.kind = ElementOpKind::None});
      case ElementFunction::Index: {
        const auto dim = static_cast<size_t>(tree.nodes[node.operands[0]].number);
        if (dim >= shape.size()) {
          return Fail(node, fmt::format("`index({})`, of a parameter with {} dims", dim, shape.size()));
        }
        const auto stride = dim + 1 < shape.size() ? static_cast<double>(shape[1]) : 1.0;
        return Emit({.kind = ElementOpKind::Index,
                     .slot = Slot(static_cast<double>(shape[dim]), stride),
                     .position = position});
      }
      case ElementFunction::RowNorm: {
        if (position >= 0) {
          return Fail(node, "a copy with indices of a parameter whose rule has `row_norm`");
        }
        const int slot = Slot(0.0);
        program_.row_norms.push_back({operands[0], slot});
        const int norm = Emit({.kind = ElementOpKind::Number, .slot = slot});
        is_of_loaded_.back() = is_of_loaded_[static_cast<size_t>(operands[0])];
        return norm;
      }
      case ElementFunction::Copy:
      case ElementFunction::Seed: break;
    }
    CHECK(false, "`{}`", Function(node).name);
  }

  auto AddCopy(const ExprNode& node, const std::vector<int>& operands, int position) -> int {
    const std::string& name = node.texts.front();
    if (program_.ops.size() > MaxExprOperations) {
      return Fail(node, fmt::format("the copies up to here take more than {} operations", MaxExprOperations));
    }
    const ElementSource* const source = find_(name);
    if (source == nullptr) {
      return Fail(node, fmt::format("there is no parameter `{}`", name));
    }
    if (std::find(around_.begin(), around_.end(), source) != around_.end()) {
      return Fail(node, fmt::format("`{}` is a copy of itself", name));
    }
    if (const std::string fault = IndexFault(name, source->shape, operands.size()); !fault.empty()) {
      return Fail(node, fault);
    }
    const int element = AddPosition(source->shape, operands, position);
    const int value = Add(*source, element);
    return Emit(
        {.kind = ElementOpKind::Rounded, .operands = {value}, .position = element, .to_bfloat16 = source->is_bfloat16});
  }

  auto AddLoaded(const ExprNode& node, const std::vector<int>& operands, int position) -> int {
    const std::string& name = node.texts.front();
    if (!find_loaded_) {
      return Fail(node, "`seed` reads a checkpoint, and `first` in [start] names none");
    }
    const std::vector<int64_t>* const shape = find_loaded_(name);
    if (shape == nullptr) {
      return Fail(node, fmt::format("there is no tensor `{}` in the seed", name));
    }
    if (const std::string fault = IndexFault(name, *shape, operands.size()); !fault.empty()) {
      return Fail(node, fault);
    }
    const int element = AddPosition(*shape, operands, position);
    if (element >= 0 && is_of_loaded_[static_cast<size_t>(element)]) {
      return Fail(node, fmt::format("an index of `{}` depends on what is loaded", name));
    }
    int64_t num_elements = 1;
    for (const int64_t dim : *shape) {
      num_elements *= dim;
    }
    const auto slot = static_cast<int>(program_.loads.size());
    const int loaded = Emit({.kind = ElementOpKind::Loaded, .slot = slot, .position = element});
    program_.loads.push_back({.tensor = name, .num_elements = num_elements, .op = loaded});
    return loaded;
  }

  /// Returns why a shape has no element of so many indices; empty if it has one. Without indices it is the shape of the
  /// element itself.
  auto IndexFault(const std::string& name, const std::vector<int64_t>& shape, size_t num_indices) const -> std::string {
    if (num_indices == 0 && shape != around_.back()->shape) {
      return fmt::format("`{}` has the shape [{}], and is copied without indices into one of [{}]", name,
                         fmt::join(shape, ", "), fmt::join(around_.back()->shape, ", "));
    }
    if (num_indices > 0 && num_indices != shape.size()) {
      return fmt::format("`{}` has {} dims; here {} are given", name, shape.size(),
                         num_indices == 1 ? "1 index" : "2 indices");
    }
    return {};
  }

  /// Adds the number of the element at these indices. Returns `position` if there are no indices.
  auto AddPosition(const std::vector<int64_t>& shape, const std::vector<int>& indices, int position) -> int {
    int element = position;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int index =
          Emit({.kind = ElementOpKind::Checked, .operands = {indices[d]}, .slot = Slot(double(shape[d]))});
      if (d == 0) {
        element = index;
        continue;
      }
      const int row = EmitOperation(ExprNodeKind::Multiply, {element, EmitNumber(static_cast<double>(shape[d]))});
      element = EmitOperation(ExprNodeKind::Add, {row, index});
    }
    return element;
  }

  const FindElementSource& find_;
  const FindLoadedShape& find_loaded_;
  ElementProgram program_;
  /// By instruction: true if its value depends on what is loaded.
  std::vector<bool> is_of_loaded_;
  std::vector<ExprError> errors_;
  /// The parameter whose rule is being read, after the parameters that copy it.
  std::vector<const ElementSource*> around_;
};

}  // namespace

auto MakeElementProgram(const ElementSource& parameter, const FindElementSource& find,
                        const FindLoadedShape& find_loaded) -> ExprResult<ElementProgram> {
  return Linker(find, find_loaded).Run(parameter);
}

/// LLVM takes longer than in proportion to the length: 5 s for 2,000 operations of sums of draws, 23 s for 4,000. A
/// chain of copies through 126 layers may take 16 in each.
constexpr size_t MaxInitOperations = 2048;

auto LengthFault(const ElementProgram& program) -> std::string {
  return program.ops.size() <= MaxInitOperations
             ? std::string()
             : fmt::format("an element takes {} operations, with those of what it copies; the limit is {}",
                           program.ops.size(), MaxInitOperations);
}

}  // namespace shardc
