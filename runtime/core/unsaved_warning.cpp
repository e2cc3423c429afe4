#include "runtime/core/unsaved_warning.h"

#include <algorithm>

#include "runtime/metrics/progress.h"

namespace shardc {

auto SavedBytes(const Plan& plan) -> Bytes {
  Bytes bytes{0};
  for (const SubVector& sub_vector : plan.sub_vectors) {
    int64_t per_element = 0;
    for (const StateRole role : StateRoles) {
      per_element += HasRole(sub_vector, role) ? SizeOf(StateTypeOf(plan, sub_vector, role)) : 0;
    }
    for (const Segment& segment : sub_vector.segments) {
      bytes += Bytes{plan.parameters[segment.parameter].num_elements() * per_element};
    }
  }
  return bytes;
}

auto UnsavedWarning(const Plan& plan, Seconds since) -> std::optional<std::string> {
  const bool saves_on_the_way = std::any_of(plan.triggers.begin(), plan.triggers.end(), [](const Trigger& trigger) {
    return trigger.section == SectionKind::Save && trigger.kind == TriggerKind::EverySteps;
  });
  if (saves_on_the_way) {
    return std::nullopt;
  }
  return fmt::format(
      "warning: this launch has trained for {} and has saved nothing: `checkpoint.every` is 0, so a crash loses every "
      "step since the launch; a save writes {} in all, and `kill -USR1` makes the run save and stop",
      FormatDuration(since.value), FormatMemory(SavedBytes(plan)));
}

}  // namespace shardc
