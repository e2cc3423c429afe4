// Which collectives of a step have compute beside them, by the plan's streams and events.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

/// Collectives of one kind over the same axes that all have a product beside them, or that all have none.
struct OverlapUse {
  CollectiveKind op = CollectiveKind::None;
  AxisSet axes;
  /// Is there a product that neither waits for the collective nor has to be over before it?
  bool is_beside_compute = false;
  /// In a step, each pass of a loop counted once.
  int64_t count = 0;
  /// Names of what they write, each once, in the order of the step.
  std::vector<std::string> names;
};

/// Returns the collectives of a step; nothing for a device that runs one op after another.
auto OverlapsOf(const Plan& plan) -> std::vector<OverlapUse>;

/// Returns a line for each: first those that have compute beside them.
auto OverlapsText(const std::vector<OverlapUse>& uses) -> std::string;

}  // namespace shardc
