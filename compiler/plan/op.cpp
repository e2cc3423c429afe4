// Copies, moves, comparisons and ends of bodies of ops, whatever these are.
#include "compiler/plan/op.h"

namespace shardc {

OpBody::OpBody() : OpVariant(std::monostate{}) {}
OpBody::OpBody(const OpBody& other) = default;
OpBody::OpBody(OpBody&& other) noexcept = default;
OpBody::~OpBody() = default;
auto OpBody::operator=(const OpBody& other) -> OpBody& = default;
auto OpBody::operator=(OpBody&& other) noexcept -> OpBody& = default;

auto operator==(const OpBody& body, const OpBody& other) -> bool {
  return static_cast<const OpVariant&>(body) == static_cast<const OpVariant&>(other);
}

auto FailWithoutBody() -> void { CHECK(false, "an op without a body"); }

}  // namespace shardc
