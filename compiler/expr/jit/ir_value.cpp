#include "compiler/expr/jit/ir_value.h"

#include <limits>
#include <utility>

#include "compiler/base/check.h"

namespace shardc {

auto IrValue::lanes() const -> unsigned {
  return is_vector() ? llvm::cast<llvm::FixedVectorType>(value_->getType())->getNumElements() : 1;
}

auto IrValue::TypeOf(llvm::Type* element) const -> llvm::Type* {
  return is_vector() ? llvm::FixedVectorType::get(element, lanes()) : element;
}

auto IrValue::Constant(double number) const -> IrValue {
  CHECK(is_float(), "{}", number);
  return With(llvm::ConstantFP::get(value_->getType(), number));
}

auto IrValue::Constant(int64_t number) const -> IrValue {
  return With(llvm::ConstantInt::getSigned(value_->getType(), number));
}

auto Spread(IrValue one, IrValue like) -> IrValue {
  return one.is_vector() || !like.is_vector() ? one
                                              : one.With(one.builder().CreateVectorSplat(like.lanes(), one.value()));
}

auto Emit(IrOperation operation, IrValue left, IrValue right) -> IrValue {
  llvm::IRBuilderBase& builder = left.builder();
  llvm::Value* const a = Spread(left, right).value();
  llvm::Value* const b = Spread(right, left).value();
  const bool is_float = left.is_float();
  switch (operation) {
    case IrOperation::Add: return left.With(is_float ? builder.CreateFAdd(a, b) : builder.CreateAdd(a, b));
    case IrOperation::Subtract: return left.With(is_float ? builder.CreateFSub(a, b) : builder.CreateSub(a, b));
    case IrOperation::Multiply: return left.With(is_float ? builder.CreateFMul(a, b) : builder.CreateMul(a, b));
    case IrOperation::Divide:
      CHECK(is_float, "a division of whole numbers");
      return left.With(builder.CreateFDiv(a, b));
    case IrOperation::And: return left.With(builder.CreateAnd(a, b));
    case IrOperation::Or: return left.With(builder.CreateOr(a, b));
    case IrOperation::Xor: return left.With(builder.CreateXor(a, b));
    case IrOperation::ShiftLeft: return left.With(builder.CreateShl(a, b));
    case IrOperation::ShiftRight: return left.With(builder.CreateAShr(a, b));
  }
  CHECK(false, "operation {}", static_cast<int>(operation));
}

auto Emit(IrComparison comparison, IrValue left, IrValue right) -> IrValue {
  using Predicate = llvm::CmpInst::Predicate;
  constexpr std::pair<Predicate, Predicate> Predicates[] = {
      {Predicate::FCMP_OLT, Predicate::ICMP_SLT}, {Predicate::FCMP_OLE, Predicate::ICMP_SLE},
      {Predicate::FCMP_OGT, Predicate::ICMP_SGT}, {Predicate::FCMP_OGE, Predicate::ICMP_SGE},
      {Predicate::FCMP_OEQ, Predicate::ICMP_EQ},  {Predicate::FCMP_UNE, Predicate::ICMP_NE},
  };
  const auto& [of_floats, of_integers] = Predicates[static_cast<size_t>(comparison)];
  return left.With(left.builder().CreateCmp(left.is_float() ? of_floats : of_integers, Spread(left, right).value(),
                                            Spread(right, left).value()));
}

auto operator-(IrValue a) -> IrValue {
  return a.With(a.is_float() ? a.builder().CreateFNeg(a.value()) : a.builder().CreateNeg(a.value()));
}

/// Returns the integer type as wide as a float's, or the other way round.
static auto SameWidth(IrValue x) -> llvm::Type* {
  llvm::IRBuilderBase& builder = x.builder();
  const bool is_wide = x.element_type()->getPrimitiveSizeInBits() == 64;
  if (x.is_float()) {
    return x.TypeOf(is_wide ? builder.getInt64Ty() : builder.getInt32Ty());
  }
  return x.TypeOf(is_wide ? builder.getDoubleTy() : builder.getFloatTy());
}

auto BitsOf(IrValue x) -> IrValue { return x.With(x.builder().CreateBitCast(x.value(), SameWidth(x))); }
auto FromBits(IrValue bits) -> IrValue { return BitsOf(bits); }
auto ToNumber(IrValue i) -> IrValue { return i.With(i.builder().CreateSIToFP(i.value(), SameWidth(i))); }
/// Converts to an integer. In a lane that has a fault the result is arbitrary but fixed, because branches look at it.
auto ToInteger(IrValue x) -> IrValue {
  return x.With(x.builder().CreateFreeze(x.builder().CreateFPToSI(x.value(), SameWidth(x))));
}
auto ToDouble(IrValue x) -> IrValue {
  return x.With(x.builder().CreateFPExt(x.value(), x.TypeOf(x.builder().getDoubleTy())));
}
auto ToFloat(IrValue x) -> IrValue {
  return x.With(x.builder().CreateFPTrunc(x.value(), x.TypeOf(x.builder().getFloatTy())));
}
auto Like(IrValue x, double value) -> IrValue { return x.Constant(value); }

auto NextFloat(IrValue x) -> IrValue {
  const IrValue bits = BitsOf(x);
  return FromBits(Select(x >= 0.0, (bits & 0x7FFFFFFF) + 1, bits - 1));
}

auto IsFinite(IrValue x) -> IrValue { return Abs(x) < std::numeric_limits<double>::infinity(); }

static auto Call(llvm::Intrinsic::ID intrinsic, IrValue x) -> IrValue {
  return x.With(x.builder().CreateUnaryIntrinsic(intrinsic, x.value()));
}
auto Abs(IrValue x) -> IrValue { return Call(llvm::Intrinsic::fabs, x); }
auto Sqrt(IrValue x) -> IrValue { return Call(llvm::Intrinsic::sqrt, x); }
auto Floor(IrValue x) -> IrValue { return Call(llvm::Intrinsic::floor, x); }
auto Ceil(IrValue x) -> IrValue { return Call(llvm::Intrinsic::ceil, x); }
auto Trunc(IrValue x) -> IrValue { return Call(llvm::Intrinsic::trunc, x); }
auto Round(IrValue x) -> IrValue { return Call(llvm::Intrinsic::rint, x); }

auto Fma(IrValue a, IrValue b, IrValue c) -> IrValue {
  const IrValue& widest = a.is_vector() ? a : b.is_vector() ? b : c;
  const IrValue x = Spread(a, widest);
  return a.With(a.builder().CreateIntrinsic(llvm::Intrinsic::fma, {x.value()->getType()},
                                            {x.value(), Spread(b, widest).value(), Spread(c, widest).value()}));
}

auto LowHalf(IrValue word) -> IrValue { return word & int64_t{0xFFFFFFFF}; }
auto HighHalf(IrValue word) -> IrValue { return word.With(word.builder().CreateLShr(word.value(), 32)); }

auto Both(IrValue a, IrValue b) -> IrValue { return a.exists() && b.exists() ? a & b : IrValue(); }
auto Either(IrValue a, IrValue b) -> IrValue { return !a.exists() ? b : !b.exists() ? a : a | b; }
auto Not(IrValue a) -> IrValue { return a.With(a.builder().CreateNot(a.value())); }

auto Select(IrValue condition, IrValue yes, IrValue no) -> IrValue {
  if (!condition.exists()) {
    return no;
  }
  const IrValue wide_yes = Spread(Spread(yes, no), condition);
  const IrValue wide_no = Spread(Spread(no, yes), condition);
  return condition.With(condition.builder().CreateSelect(condition.value(), wide_yes.value(), wide_no.value()));
}

auto InAnyLane(IrValue condition) -> llvm::Value* {
  return condition.is_vector() ? condition.builder().CreateOrReduce(condition.value()) : condition.value();
}

}  // namespace shardc
