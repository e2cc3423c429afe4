// The numbers of a plan's scalar table. The host has one and the device has one; sections hand them over.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/loss_window.h"

namespace shardc {

/// The numbers of one rank: index = ScalarId.
class ScalarTable {
 public:
  explicit ScalarTable(size_t size) : values_(size, 0.0) {}
  auto operator[](ScalarId id) -> double& { return values_[static_cast<size_t>(id.index)]; }
  auto operator[](ScalarId id) const -> double { return values_[static_cast<size_t>(id.index)]; }
  /// Set before a step if the job's stop flag is up; `control` makes all ranks agree.
  auto RequestStop() -> void { stop_requested_ = true; }
  auto stop_requested() const -> bool { return stop_requested_; }
  /// Empty in a run that judges no loss.
  auto losses() -> LossWindow& { return losses_; }
  auto losses() const -> const LossWindow& { return losses_; }

 private:
  std::vector<double> values_;
  LossWindow losses_;
  bool stop_requested_ = false;
};

}  // namespace shardc
