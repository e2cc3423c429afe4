// Rules of [precision]: an override says something. Which units its pattern matches is for the passes to judge.
#include "compiler/check/check_context.h"

namespace shardc {

auto CheckPrecision(CheckContext& context) -> void {
  for (const PrecisionOverride& rule : context.recipe().precision.override) {
    if (!rule.compute.is_set && !rule.master.is_set && !rule.reduce.is_set) {
      context.diags().Report(rule.at, DiagnosticKind::MissingKey, "compute", "[[precision.override]]",
                             "an override names one or more of compute, master and reduce");
    }
  }
}

}  // namespace shardc
