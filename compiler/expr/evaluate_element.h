// An ElementProgram, gone through for one element or by generated code. A Target says what numbers are and where they
// come from:
//
//   Number, Float                    as numeric.h has them
//   Literal(slot) -> Number          numbers[slot]
//   Element() -> Number              the number of the element
//   Loaded(load, position*)          what loads[load] reads, at the element or at one of that number
//   Word(stream, draw, position*)    the word of a draw, as IntOf<Float>, at the element or at one of that number
//   Compute(function, arguments)     ComputeFunction, or a call of what it makes
#pragma once

#include <utility>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/expr/element_program.h"
#include "compiler/expr/function_values.h"

namespace shardc {

template <class Target>
class ElementEvaluation {
 public:
  using Number = typename Target::Number;
  using Mask = MaskOf<Number>;

  struct Value {
    Number number{};
    /// The value of a condition.
    Mask mask{};
    /// True in lanes without a value.
    Mask fault{};
  };

  ElementEvaluation(const ElementProgram& program, Target& target) : program_(program), target_(target) {}

  /// Returns the value of instruction `root`.
  auto Run(int root) -> Value {
    const std::vector<bool> is_needed = program_.NeededBy(root);
    values_.resize(program_.ops.size());
    for (size_t i = 0; i <= static_cast<size_t>(root); ++i) {
      if (is_needed[i]) {
        values_[i] = Evaluate(program_.ops[i]);
      }
    }
    return values_[static_cast<size_t>(root)];
  }

  /// Returns the value of an instruction after Run; undefined for an instruction that the root does not need.
  auto ValueOf(size_t op) const -> const Value& { return values_[op]; }

 private:
  auto Operand(const ElementOp& op, size_t i) const -> const Value& {
    return values_[static_cast<size_t>(op.operands[i])];
  }

  auto OperandFaults(const ElementOp& op) const -> Mask {
    Mask fault{};
    for (const int operand : op.operands) {
      fault = Either(fault, values_[static_cast<size_t>(operand)].fault);
    }
    return fault;
  }

  auto Evaluate(const ElementOp& op) -> Value {
    switch (op.kind) {
      case ElementOpKind::Number: {
        const Number number = target_.Literal(op.slot);
        return {.number = number, .mask = number > 0.0};
      }
      case ElementOpKind::Operation: return Operate(op);
      case ElementOpKind::Function: {
        std::vector<Number> arguments;
        for (size_t i = 0; i < op.operands.size(); ++i) {
          arguments.push_back(Operand(op, i).number);
        }
        const auto computed = target_.Compute(op.function, arguments);
        return Finite(computed.value, Either(OperandFaults(op), computed.fault));
      }
      case ElementOpKind::Index: {
        const Number index = Floor(Position(op) / target_.Literal(op.slot + 1));
        const Number size = target_.Literal(op.slot);
        return {.number = index - size * Floor(index / size), .fault = PositionFault(op)};
      }
      case ElementOpKind::Checked: {
        const Value& index = Operand(op, 0);
        const Mask is_inside = Both(Both(index.number >= 0.0, index.number < target_.Literal(op.slot)),
                                    Floor(index.number) == index.number);
        // Elements outside of the tensor are not looked at.
        return {.number = Select(is_inside, index.number, Like(index.number, 0)),
                .fault = Either(index.fault, Not(is_inside))};
      }
      case ElementOpKind::Rounded: {
        const auto rounded = ToFloat(Operand(op, 0).number);
        const auto number = ToDouble(op.to_bfloat16 ? RoundedToBfloat16(rounded) : rounded);
        return {.number = number, .fault = Either(Operand(op, 0).fault, PositionFault(op))};
      }
      case ElementOpKind::Loaded:
        return {.number = target_.Loaded(op.slot, OwnPosition(op)), .fault = PositionFault(op)};
      case ElementOpKind::None: {
        const Number element = target_.Element();
        return {.number = element, .fault = element == element};
      }
      case ElementOpKind::DrawNormal:
      case ElementOpKind::DrawUniform:
      case ElementOpKind::DrawTruncNormal:
      case ElementOpKind::DrawTailNormal: return Draw(op);
    }
    CHECK(false, "kind {}", static_cast<int>(op.kind));
  }

  /// Returns the position of an instruction; null for that of the element itself.
  auto OwnPosition(const ElementOp& op) const -> const Number* {
    return op.position < 0 ? nullptr : &values_[static_cast<size_t>(op.position)].number;
  }
  auto Position(const ElementOp& op) -> Number {
    return op.position < 0 ? target_.Element() : values_[static_cast<size_t>(op.position)].number;
  }
  auto PositionFault(const ElementOp& op) -> Mask {
    return op.position < 0 ? Mask{} : values_[static_cast<size_t>(op.position)].fault;
  }

  /// Returns a value that has to be finite.
  static auto Finite(Number number, Mask fault) -> Value {
    return {.number = number, .fault = Either(fault, Not(IsFinite(number)))};
  }

  auto Operate(const ElementOp& op) -> Value {
    const Value& first = Operand(op, 0);
    const Mask faults = OperandFaults(op);
    if (op.operands.size() == 1) {
      switch (op.operation) {
        case ExprNodeKind::Negate: return {.number = -first.number, .fault = faults};
        case ExprNodeKind::Not: return Condition(Not(first.mask), faults);
        default: CHECK(false, "operation {}", static_cast<int>(op.operation));
      }
    }
    const Value& second = Operand(op, 1);
    const Number a = first.number;
    const Number b = second.number;
    switch (op.operation) {
      case ExprNodeKind::Add: return Finite(a + b, faults);
      case ExprNodeKind::Subtract: return Finite(a - b, faults);
      case ExprNodeKind::Multiply: return Finite(a * b, faults);
      case ExprNodeKind::Divide: return Finite(a / b, faults);
      case ExprNodeKind::Modulo: {
        const auto computed = ComputeRemainder(a, b);
        return Finite(computed.value, Either(faults, computed.fault));
      }
      case ExprNodeKind::Power: {
        const Number both[] = {a, b};
        const auto computed = target_.Compute(ExprFunction::Pow, both);
        return Finite(computed.value, Either(faults, computed.fault));
      }
      case ExprNodeKind::Less: return Condition(a < b, faults);
      case ExprNodeKind::LessEqual: return Condition(a <= b, faults);
      case ExprNodeKind::Greater: return Condition(a > b, faults);
      case ExprNodeKind::GreaterEqual: return Condition(a >= b, faults);
      case ExprNodeKind::Equal: return Condition(a == b, faults);
      case ExprNodeKind::NotEqual: return Condition(a != b, faults);
      case ExprNodeKind::And:
        return Condition(Both(first.mask, second.mask), Either(first.fault, Both(first.mask, second.fault)));
      case ExprNodeKind::Or:
        return Condition(Either(first.mask, second.mask), Either(first.fault, Both(Not(first.mask), second.fault)));
      case ExprNodeKind::If: {
        const Value& third = Operand(op, 2);
        return {
            .number = Select(first.mask, second.number, third.number),
            .mask = Either(Both(first.mask, second.mask), Both(Not(first.mask), third.mask)),
            .fault = Either(first.fault, Either(Both(first.mask, second.fault), Both(Not(first.mask), third.fault)))};
      }
      default: CHECK(false, "operation {}", static_cast<int>(op.operation));
    }
  }

  auto Condition(Mask mask, Mask fault) -> Value {
    const Number one = Like(target_.Element(), 1);
    return {.number = Select(mask, one, Like(one, 0)), .mask = mask, .fault = fault};
  }

  auto Draw(const ElementOp& op) -> Value {
    const auto x = SymmetricOf(target_.Word(op.stream, op.draw, OwnPosition(op)));
    if (op.operands.empty()) {
      const auto part = [&](int i) { return target_.Literal(op.slot + i); };
      return {.number = ToDouble(DrawKnown(op.kind, x, part)), .fault = PositionFault(op)};
    }
    const Mask fault = Either(OperandFaults(op), PositionFault(op));
    const auto argument = [&](size_t i) { return Operand(op, i).number; };
    using Float = typename Target::Float;
    switch (op.kind) {
      case ElementOpKind::DrawNormal:
        return Finite(ToDouble(NormalLaw<Float>::Of(argument(0), argument(1)).Draw(x)),
                      Either(fault, Not(argument(1) >= 0.0)));
      case ElementOpKind::DrawUniform:
        return Finite(ToDouble(UniformLaw<Float>::Of(argument(0), argument(1)).Draw(x)),
                      Either(fault, Not(argument(0) < argument(1))));
      case ElementOpKind::DrawTruncNormal: {
        const Number mean = argument(0);
        const Number std = argument(1);
        const Number a = argument(2);
        const Number b = argument(3);
        const Float drawn = Select(IsTail(mean, a, b), TailNormalLaw<Number, Float>::Of(mean, std, a, b).Draw(x),
                                   TruncNormalLaw<Float>::Of(mean, std, a, b).Draw(x));
        return Finite(ToDouble(drawn), Either(fault, Not(Both(std > 0.0, a < b))));
      }
      default: CHECK(false, "draw {}", static_cast<int>(op.kind));
    }
  }

  template <class Float, class Part>
  static auto DrawKnown(ElementOpKind kind, Float x, const Part& part) -> Float {
    const auto floats = [&](int i) { return ToFloat(part(i)); };
    switch (kind) {
      case ElementOpKind::DrawNormal: return NormalLaw<Float>{floats(0), floats(1)}.Draw(x);
      case ElementOpKind::DrawUniform: return UniformLaw<Float>{floats(0), floats(1), floats(2), floats(3)}.Draw(x);
      case ElementOpKind::DrawTruncNormal:
        return TruncNormalLaw<Float>{floats(0), floats(1), floats(2), floats(3), floats(4), floats(5)}.Draw(x);
      case ElementOpKind::DrawTailNormal:
        return TailNormalLaw<Number, Float>{part(0), part(1), part(2), part(3), part(4), part(5), floats(6), floats(7)}
            .Draw(x);
      default: CHECK(false, "draw {}", static_cast<int>(kind));
    }
  }

  const ElementProgram& program_;
  Target& target_;
  std::vector<Value> values_;
};

}  // namespace shardc
