// The accesses of all ops of a plan, worked out once for those who ask for them again and again.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "compiler/plan/plan.h"

namespace shardc {

class AccessTable {
 public:
  /// Requires: each op has a body. The plan does not change while the table is asked.
  explicit AccessTable(const Plan& plan);

  /// Returns the accesses of one op, as AccessesOf does.
  auto Of(SectionKind section, size_t index) const -> std::span<const Access> {
    const size_t op = first_ops_[static_cast<size_t>(section)] + index;
    return {accesses_.data() + begins_[op], begins_[op + 1] - begins_[op]};
  }

 private:
  /// The number of the first op of each section, in a count over all sections.
  std::array<size_t, NumSections> first_ops_{};
  /// By that number: where the accesses of the op begin. One more: where those of the last op end.
  std::vector<size_t> begins_;
  std::vector<Access> accesses_;
};

}  // namespace shardc
