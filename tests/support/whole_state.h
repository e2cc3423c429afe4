// Parameters and moments of a run as whole tensors, put together from what its ranks own: compared bit for bit, or by
// their norms.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/runner.h"

namespace shardc {

/// Returns the bits of a value's elements, whatever the device is. An element in bf16 has those of the same float.
auto BitsOf(RankRunner& runner, ValueId value) -> std::vector<uint32_t>;

class WholeState {
 public:
  /// Adds what a rank owns. Requires: one rank at a time calls it.
  auto Take(const Plan& plan, RankRunner& runner, int64_t rank) -> void;

  auto empty() const -> bool { return tensors_.empty(); }
  /// Counts the elements that several ranks hold, and those of them that are not the same on all.
  auto num_shared() const -> int64_t { return num_shared_; }
  auto num_different() const -> int64_t { return num_different_; }
  /// Counts the elements that no rank owns.
  auto num_missing() const -> int64_t;
  /// Returns the first tensor that differs from that of `other`; empty if none does.
  auto DifferenceFrom(const WholeState& other) const -> std::string;

  struct Distance {
    std::string tensor;
    /// The norm of the difference / that of the tensor of `other`.
    double relative = 0;
  };
  /// Returns the tensor of a role that is farthest from that of `other`. Requires: both have the same tensors.
  auto FarthestFrom(const WholeState& other, StateRole role) const -> Distance;

 private:
  using Tensor = std::vector<std::optional<uint32_t>>;

  auto Put(std::optional<uint32_t>& element, uint32_t bits) -> void {
    num_shared_ += element ? 1 : 0;
    num_different_ += element && *element != bits ? 1 : 0;
    element = bits;
  }

  std::map<std::string, Tensor> tensors_;
  int64_t num_shared_ = 0;
  int64_t num_different_ = 0;
};

}  // namespace shardc
