#include "compiler/plan/triggers.h"

namespace shardc {

auto NumFires(const Plan& plan, SectionKind section, int64_t step) -> int64_t {
  int64_t count = 0;
  bool is_at_end = false;
  bool is_counted = false;
  for (const Trigger& trigger : plan.triggers) {
    if (trigger.section == section && trigger.kind == TriggerKind::EverySteps) {
      count += plan.run.steps / trigger.every - (step - 1) / trigger.every;
      is_counted |= plan.run.steps % trigger.every == 0;
    }
    is_at_end |= trigger.section == section && trigger.kind == TriggerKind::End;
  }
  return count + (is_at_end && !is_counted ? 1 : 0);
}

}  // namespace shardc
