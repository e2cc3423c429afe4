// release. C1: the buffer lies in an arena whose contents end with a section.
#include "compiler/ops/op_support.h"

namespace shardc {

constinit const OpFacts op::Release::Facts{.sections = SectionSet::All()};

auto Shape(const op::Release&, const Plan&) -> std::vector<ValueType> { return {}; }

auto Verify(const op::Release& op, const Plan& plan, OpCheck& check) -> void {
  const Buffer& buffer = plan.buffers[op.buffer];
  check.Expect(!IsPersistent(buffer.arena), "release-c1"_rule, "{} lies in the {} arena, which is never released",
               buffer.name, ToText(buffer.arena));
}

}  // namespace shardc
