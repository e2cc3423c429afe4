// A number, whole number or condition in the code that is being made: numeric.h's operations on it emit instructions.
// It is one value or a vector; where both meet, the one stands for every lane.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "compiler/expr/numeric.h"

namespace shardc {

class IrValue {
 public:
  /// Makes a condition that never holds.
  IrValue() = default;
  IrValue(llvm::IRBuilderBase& builder, llvm::Value* value) : builder_(&builder), value_(value) {}

  auto exists() const -> bool { return value_ != nullptr; }
  auto value() const -> llvm::Value* { return value_; }
  auto builder() const -> llvm::IRBuilderBase& { return *builder_; }
  auto With(llvm::Value* value) const -> IrValue { return {*builder_, value}; }

  auto is_vector() const -> bool { return value_->getType()->isVectorTy(); }
  auto lanes() const -> unsigned;
  /// Returns the type of one lane.
  auto element_type() const -> llvm::Type* { return value_->getType()->getScalarType(); }
  auto is_float() const -> bool { return element_type()->isFloatingPointTy(); }
  /// Returns a type of as many lanes.
  auto TypeOf(llvm::Type* element) const -> llvm::Type*;
  auto Constant(double number) const -> IrValue;
  auto Constant(int64_t number) const -> IrValue;

 private:
  llvm::IRBuilderBase* builder_ = nullptr;
  llvm::Value* value_ = nullptr;
};

template <>
struct IntOfNumber<IrValue> {
  using Type = IrValue;
};
template <>
struct MaskOfNumber<IrValue> {
  using Type = IrValue;
};

enum class IrOperation { Add, Subtract, Multiply, Divide, And, Or, Xor, ShiftLeft, ShiftRight };
enum class IrComparison { Less, LessEqual, Greater, GreaterEqual, Equal, NotEqual };
auto Emit(IrOperation operation, IrValue a, IrValue b) -> IrValue;
auto Emit(IrComparison comparison, IrValue a, IrValue b) -> IrValue;

template <std::integral I>
auto ConstantLike(IrValue like, I number) -> IrValue {
  return like.is_float() ? like.Constant(static_cast<double>(number)) : like.Constant(static_cast<int64_t>(number));
}
inline auto ConstantLike(IrValue like, double number) -> IrValue { return like.Constant(number); }

template <class T>
concept Literal = std::is_arithmetic_v<T>;

#define SHARDC_IR_OPERATOR(sign, what)                                                  \
  inline auto operator sign(IrValue a, IrValue b)->IrValue { return Emit(what, a, b); } \
  template <Literal T>                                                                  \
  auto operator sign(IrValue a, T b)->IrValue {                                         \
    return Emit(what, a, ConstantLike(a, b));                                           \
  }                                                                                     \
  template <Literal T>                                                                  \
  auto operator sign(T a, IrValue b)->IrValue {                                         \
    return Emit(what, ConstantLike(b, a), b);                                           \
  }
SHARDC_IR_OPERATOR(+, IrOperation::Add)
SHARDC_IR_OPERATOR(-, IrOperation::Subtract)
SHARDC_IR_OPERATOR(*, IrOperation::Multiply)
SHARDC_IR_OPERATOR(/, IrOperation::Divide)
SHARDC_IR_OPERATOR(&, IrOperation::And)
SHARDC_IR_OPERATOR(|, IrOperation::Or)
SHARDC_IR_OPERATOR(^, IrOperation::Xor)
SHARDC_IR_OPERATOR(<<, IrOperation::ShiftLeft)
SHARDC_IR_OPERATOR(>>, IrOperation::ShiftRight)
SHARDC_IR_OPERATOR(<, IrComparison::Less)
SHARDC_IR_OPERATOR(<=, IrComparison::LessEqual)
SHARDC_IR_OPERATOR(>, IrComparison::Greater)
SHARDC_IR_OPERATOR(>=, IrComparison::GreaterEqual)
SHARDC_IR_OPERATOR(==, IrComparison::Equal)
SHARDC_IR_OPERATOR(!=, IrComparison::NotEqual)
#undef SHARDC_IR_OPERATOR
auto operator-(IrValue a) -> IrValue;

auto BitsOf(IrValue x) -> IrValue;
auto FromBits(IrValue bits) -> IrValue;
auto ToNumber(IrValue i) -> IrValue;
auto ToInteger(IrValue x) -> IrValue;
auto ToDouble(IrValue x) -> IrValue;
auto ToFloat(IrValue x) -> IrValue;
auto Like(IrValue x, double value) -> IrValue;
auto NextFloat(IrValue x) -> IrValue;
auto IsFinite(IrValue x) -> IrValue;
auto Abs(IrValue x) -> IrValue;
auto Sqrt(IrValue x) -> IrValue;
auto Floor(IrValue x) -> IrValue;
auto Ceil(IrValue x) -> IrValue;
auto Trunc(IrValue x) -> IrValue;
auto Round(IrValue x) -> IrValue;
auto Fma(IrValue a, IrValue b, IrValue c) -> IrValue;
auto LowHalf(IrValue word) -> IrValue;
auto HighHalf(IrValue word) -> IrValue;
auto Both(IrValue a, IrValue b) -> IrValue;
auto Either(IrValue a, IrValue b) -> IrValue;
/// Requires: a exists.
auto Not(IrValue a) -> IrValue;
auto Select(IrValue condition, IrValue yes, IrValue no) -> IrValue;
/// Returns whether a condition holds in any lane.
auto InAnyLane(IrValue condition) -> llvm::Value*;
/// Returns `one` in as many lanes as `like` has.
auto Spread(IrValue one, IrValue like) -> IrValue;

template <class Yes>
auto SelectSeldom(IrValue condition, const Yes& yes, IrValue no) -> IrValue {
  llvm::IRBuilderBase& builder = condition.builder();
  llvm::Function* const function = builder.GetInsertBlock()->getParent();
  const IrValue otherwise = Spread(no, condition);
  auto* const needed = llvm::BasicBlock::Create(builder.getContext(), "needed", function);
  auto* const after = llvm::BasicBlock::Create(builder.getContext(), "after", function);
  llvm::BasicBlock* const before = builder.GetInsertBlock();
  builder.CreateCondBr(InAnyLane(condition), needed, after);
  builder.SetInsertPoint(needed);
  const IrValue chosen = Select(condition, Spread(yes(), condition), otherwise);
  llvm::BasicBlock* const end = builder.GetInsertBlock();
  builder.CreateBr(after);
  builder.SetInsertPoint(after);
  llvm::PHINode* const result = builder.CreatePHI(otherwise.value()->getType(), 2);
  result->addIncoming(otherwise.value(), before);
  result->addIncoming(chosen.value(), end);
  return condition.With(result);
}

}  // namespace shardc
