// What the compiler knows of each op, declared from the rows of schemas/ops.def and defined in one file an op:
//
//   Shape(op, plan)         types of the values it writes, in row order of OUT, OVER, ACC fields
//   Verify(op, plan, check) its numbered constraints C1, C2, ... on operand shapes, dtypes and placements
//   OwnCost(op, plan)       ops with a COST: FLOPs of products, bytes touched, bytes on the wire
//   Vjp(op, context)        differentiable ops: emits the ops that compute the operands' gradients
//   Parts(op, context)      fused ops: emits the ops that it is made of (parts.h)
//   ScratchBytes(op, plan)  ops with a SCRATCH field: its bytes, by which the compiler makes the buffer and the kernel
//                           checks it
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/plan/exchange.h"
#include "compiler/plan/plan.h"

namespace shardc {

/// The name of something that a plan must keep to: a rule of the verifier, or a numbered constraint of an op. It stands
/// in brackets at the end of each finding. Made only by the literal `"read-undefined"_rule`, so that tests find every
/// name in the sources.
class PlanRule {
 public:
  constexpr auto name() const -> std::string_view { return name_; }

 private:
  friend consteval auto operator""_rule(const char* name, size_t size) -> PlanRule;

  explicit constexpr PlanRule(std::string_view name) : name_(name) {}

  std::string_view name_;
};

consteval auto operator""_rule(const char* name, size_t size) -> PlanRule { return PlanRule({name, size}); }

struct ValueType {
  DType dtype = DType::F32;
  Dims shape;

  friend auto operator==(const ValueType&, const ValueType&) -> bool = default;
};

/// Bytes that a collective sends, once.
struct WireCost {
  AxisSet axes;
  DType dtype = DType::F32;
  /// Bytes of the full vector.
  Bytes payload;
  /// Traffic of the R ranks of a group together: R - 1 times the payload for gathers and scatters, twice that for an
  /// all-reduce by slices. The share of one rank may be a fraction. Source: Thakur, Rabenseifner, Gropp 2005,
  /// "Optimization of Collective Communication Operations in MPICH", sec. 4.
  GroupTraffic group;
};

struct OpCost {
  /// Matrix products: 2mnk each; causal attention at half of the full square.
  Flops matmul_flops;
  Bytes read;
  Bytes written;
  /// Set for collectives.
  std::vector<WireCost> wires;
};

/// Takes the failures of Verify: `check.Expect(a == b, "matmul-c2"_rule, "a has {} columns, b has {} rows", ...)`.
class OpCheck {
 public:
  explicit OpCheck(std::string op_line) : op_line_(std::move(op_line)) {}

  template <class... Args>
  auto Expect(bool holds, PlanRule constraint, fmt::format_string<Args...> format, Args&&... args) -> bool {
    if (!holds) {
      failures_.push_back(
          fmt::format("{}: {} [{}]", op_line_, fmt::format(format, std::forward<Args>(args)...), constraint.name()));
    }
    return holds;
  }
  auto failures() const -> const std::vector<std::string>& { return failures_; }

 private:
  std::string op_line_;
  std::vector<std::string> failures_;
};

/// Questions that a VJP rule may ask, and ops that it may emit. Implemented in backward.cpp.
class VjpContext {
 public:
  virtual ~VjpContext() = default;
  /// Returns the gradient of a value that the op wrote. Requires: NeedsGradient of one of its results held.
  virtual auto GradientOf(ValueId value) -> ValueId = 0;
  /// Returns true if anything upstream of this operand wants its gradient; false for tokens, tables, frozen parameters.
  virtual auto NeedsGradient(ValueId value) -> bool = 0;
  /// The place of a contribution to the gradient of a value: it is written to `value` and, if there are contributions
  /// already, added to `onto`.
  struct Target {
    ValueId value;
    ValueId onto;
  };
  virtual auto GradientTarget(ValueId value) -> Target = 0;
  /// Says that `gradient` is the whole gradient of `value` (residual branches share one). Adds where one exists.
  virtual auto PassGradient(ValueId value, ValueId gradient) -> void = 0;
  /// Makes a gradient value of `like`'s type over the bytes of `over`, which the emitted op overwrites. It becomes the
  /// gradient of `like`. Requires: `like` has no gradient yet.
  virtual auto GradientOver(ValueId like, ValueId over) -> ValueId = 0;
  /// Makes a new value for a term of a value's gradient that an op of its own adds.
  virtual auto NewTerm(ValueId value) -> ValueId = 0;
  /// Appends a backward op.
  virtual auto Emit(OpBody body) -> void = 0;
  /// Returns the name of a value for messages: "logits".
  virtual auto Name(ValueId value) const -> std::string = 0;
  /// Says that the forward has no backward, and why. The rule may continue; what it emits is of no use.
  virtual auto Refuse(std::string why) -> void = 0;
};

class PartsContext;

#define NotDifferentiable(Type)
#define Fused(Type) auto Parts(const op::Type& op, PartsContext& context)->void;
#define Differentiable(Type) auto Vjp(const op::Type& op, VjpContext& context)->void;
#define OP(Type, mnemonic, differentiable, fields, doc)                     \
  auto Shape(const op::Type& op, const Plan& plan)->std::vector<ValueType>; \
  auto Verify(const op::Type& op, const Plan& plan, OpCheck& check)->void;  \
  auto OwnCost(const op::Type& op, const Plan& plan)->OpCost;               \
  auto ScratchBytes(const op::Type& op, const Plan& plan)->Bytes;           \
  differentiable(Type)
#include "schemas/ops.def"

/// Returns the cost of an op that reads and writes the whole of every operand, and multiplies no matrices. ACC onto a
/// value reads it too.
auto TrafficOf(const OpBody& body, const Plan& plan) -> OpCost;

/// Returns what an op costs by the formula of its file, or by its traffic.
template <class T>
auto Cost(const T& op, const Plan& plan) -> OpCost {
  if constexpr (requires { T::HasOwnCost; }) {
    return OwnCost(op, plan);
  } else {
    return TrafficOf(op, plan);
  }
}

template <class T>
concept HasScratch = requires(const T& op) {
  op.scratch;
};

}  // namespace shardc
