// One op of a plan: its body (a struct made from its row in schemas/ops.def) and what every op carries.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/base/check.h"
#include "compiler/base/in_place_vector.h"
#include "compiler/mesh/rank_expr.h"
#include "compiler/plan/types.h"

namespace shardc {

/// Knowledge of an op besides its fields; see compiler/ops/op_facts.h.
struct OpFacts;

namespace op {

// The structs: one member per field, in row order. `Facts` is defined in compiler/ops/<mnemonic>.cpp.
#define IN(x) ValueId x;
#define IN_IF(x) ValueId x{};
#define OUT(y) ValueId y;
#define OVER(y, x) ValueId y;
#define ACC(y) \
  ValueId y;   \
  ValueId y##_onto;
#define INOUT(p) ValueId p;
#define SCRATCH(s) ValueId s;
#define MAYBE(y) ValueId y;
#define BUFFER(b) BufferId b;
#define ATTR(Type, name) Type name{};
#define COST static constexpr bool HasOwnCost = true;
#define OP(Type, mnemonic, differentiable, fields, doc)                        \
  struct Type {                                                                \
    static constexpr std::string_view Mnemonic = #mnemonic;                    \
    static const OpFacts Facts;                                                \
    fields friend auto operator==(const Type&, const Type&) -> bool = default; \
  };
#include "schemas/ops.def"

}  // namespace op

using OpVariant = std::variant<
#define OP(Type, mnemonic, differentiable, fields, doc) op::Type,
#include "schemas/ops.def"
    std::monostate>;

/// One of the structs, or none. Copies, moves and comparisons are compiled once, in compiler/plan/op.cpp: every file
/// that has a vector of ops would else compile them for every row.
class OpBody : public OpVariant {
 public:
  OpBody();
  template <class Body>
  requires requires { Body::Mnemonic; }
  OpBody(Body body) : OpVariant(std::in_place_type<Body>, std::move(body)) {}
  OpBody(const OpBody& other);
  OpBody(OpBody&& other) noexcept;
  ~OpBody();
  auto operator=(const OpBody& other) -> OpBody&;
  auto operator=(OpBody&& other) noexcept -> OpBody&;
  friend auto operator==(const OpBody& body, const OpBody& other) -> bool;
};

enum class OpKind : uint8_t {
#define OP(Type, mnemonic, differentiable, fields, doc) Type,
#include "schemas/ops.def"
};
#define OP(Type, mnemonic, differentiable, fields, doc) +1
constexpr int NumOpKinds = 0
#include "schemas/ops.def"
    ;
template <>
struct EnumNames<OpKind> {
  static constexpr std::array<std::string_view, NumOpKinds> names{
#define OP(Type, mnemonic, differentiable, fields, doc) #mnemonic,
#include "schemas/ops.def"
  };
};

template <class Visitor, class Id>
auto VisitInIf(Visitor& visitor, std::string_view name, Id& id) -> void {
  if constexpr (requires { visitor.InIf(name, id); }) {
    visitor.InIf(name, id);
  } else if (id.valid()) {
    visitor.In(name, id);
  }
}

template <class Visitor, class Id>
auto VisitMaybe(Visitor& visitor, std::string_view name, Id& id) -> void {
  if constexpr (requires { visitor.Maybe(name, id); }) {
    visitor.Maybe(name, id);
  } else if (id.valid()) {
    visitor.InOut(name, id);
  }
}

/// The fields of one op's body, one specialisation per row.
template <class Body>
struct FieldsOf;
#define IN(x) visitor.In(#x, body.x);
#define IN_IF(x) VisitInIf(visitor, #x, body.x);
#define OUT(y) visitor.Out(#y, body.y);
#define OVER(y, x) visitor.Over(#y, body.y, body.x);
#define ACC(y) visitor.Acc(#y, body.y, body.y##_onto);
#define INOUT(p) visitor.InOut(#p, body.p);
#define SCRATCH(s) visitor.Scratch(#s, body.s);
#define MAYBE(y) VisitMaybe(visitor, #y, body.y);
#define BUFFER(b) visitor.Whole(#b, body.b);
#define ATTR(Type, name) visitor.Attr(#name, body.name);
#define COST
#define OP(Type, mnemonic, differentiable, fields, doc)                                         \
  template <>                                                                                   \
  struct FieldsOf<op::Type> {                                                                   \
    template <class Body, class Visitor>                                                        \
    static auto Visit([[maybe_unused]] Body& body, [[maybe_unused]] Visitor& visitor) -> void { \
      fields                                                                                    \
    }                                                                                           \
  };
#include "schemas/ops.def"

/// Calls one method of `visitor` per field, in row order. The visitor has, with ids by value or by reference as `Body`
/// is const or not: In(name, id), Out(name, id), Over(name, id, operand), Acc(name, id, onto), InOut(name, id),
/// Scratch(name, id), Whole(name, buffer), Attr(name, value). An IN_IF field comes as In where it is set, a MAYBE
/// field as InOut; a visitor with InIf(name, id) or Maybe(name, id) sees it always.
template <class Body, class Visitor>
auto VisitFields(Body& body, Visitor&& visitor) -> void {
  FieldsOf<std::remove_const_t<Body>>::Visit(body, visitor);
}

/// A visitor of VisitFields that ignores every field; derive and hide what matters.
struct IgnoreFields {
  auto In(std::string_view, ValueId) -> void {}
  auto Out(std::string_view, ValueId) -> void {}
  auto Over(std::string_view, ValueId, ValueId) -> void {}
  auto Acc(std::string_view, ValueId, ValueId) -> void {}
  auto InOut(std::string_view, ValueId) -> void {}
  auto Scratch(std::string_view, ValueId) -> void {}
  auto Whole(std::string_view, BufferId) -> void {}
  template <class T>
  auto Attr(std::string_view, const T&) -> void {}
};

/// Run only where the scalar is not 0 (or is 0, if negated).
struct Predicate {
  ScalarId scalar;
  bool negated = false;

  auto always() const -> bool { return !scalar.valid(); }
  friend auto operator==(const Predicate&, const Predicate&) -> bool = default;
};

struct Op {
  OpBody body;
  Stream stream = Stream::Compute;
  std::vector<EventId> waits;
  EventId signals;
  Predicate when;
  /// Block index, or -1.
  int32_t layer = -1;
  Phase phase = Phase::None;
  Origin origin;
  PassKind made_by = PassKind::Build;

  auto kind() const -> OpKind { return static_cast<OpKind>(body.index()); }
  template <class T>
  auto As() const -> const T* {
    return std::get_if<T>(&body);
  }
  friend auto operator==(const Op&, const Op&) -> bool = default;
};

/// How an op touches a value.
enum class AccessKind : uint8_t { Read, Write, ReadWrite };
struct Access {
  ValueId value;
  AccessKind kind;
  /// Memory that holds nothing before the op or after it.
  bool is_scratch;
  /// For a write over or onto another value: that value, which dies.
  ValueId kills;
  std::string_view field;
};

/// The accesses of one op; every pass and every part of the verifier asks for those of every op.
using AccessList = InPlaceVector<Access, 12>;

/// Returns every value that an op touches, in row order. An OVER operand appears as its read and as `kills` of the
/// write.
auto AccessesOf(const OpBody& body) -> AccessList;

/// Returns the buffer whose life the op ends: that of its BUFFER field; an invalid id if it has no such field.
auto ReleasedBufferOf(const OpBody& body) -> BufferId;

[[noreturn]] auto FailWithoutBody() -> void;

/// Calls `function` with the concrete body: `VisitBody(op.body, [&](const auto& body) { ... })`. A switch: std::visit
/// takes several times as long to compile.
template <class Body, class Function>
auto VisitBody(Body& body, Function&& function) -> decltype(auto) {
  switch (static_cast<OpKind>(body.index())) {
#define OP(Type, mnemonic, differentiable, fields, doc) \
  case OpKind::Type: {                                  \
    return function(*std::get_if<op::Type>(&body));     \
  }
#include "schemas/ops.def"
  }
  FailWithoutBody();
}

}  // namespace shardc
