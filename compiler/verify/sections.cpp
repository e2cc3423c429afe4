// Sections: each op stands in a section that it is made for, and what outlives a section (state, constants, samples) is
// written there by the ops that are made to write it, and by no other.
#include "compiler/verify/internal.h"

namespace shardc {

auto VerifySections(const Plan& plan, Findings& findings) -> void {
  ForEachOp(plan, [&](SectionKind section, size_t index, const Op& op) {
    const OpFacts& facts = FactsOf(op);
    if (!facts.sections.Has(section)) {
      findings.AddOp(section, index, "op-section"_rule, "{} does not run in section {}", ToText(op.kind()),
                     ToText(section));
      return;
    }
    for (const Access& access : findings.AccessesOf(section, index)) {
      const Value& value = plan.values[access.value];
      if (access.kind != AccessKind::Read && IsPersistent(plan.buffers[value.buffer].arena) &&
          !facts.lasting.Has(section)) {
        findings.AddOp(section, index, "lasting-write"_rule,
                       "writes {}, which outlives section {}; {} is not made to change it there", value.name,
                       ToText(section), ToText(op.kind()));
      }
    }
  });
}

}  // namespace shardc
