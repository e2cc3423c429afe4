#include "compiler/verify/access_table.h"

namespace shardc {

AccessTable::AccessTable(const Plan& plan) {
  // So that the table is moved seldom; what is reserved and not written takes no memory.
  constexpr size_t AccessesPerOp = 5;
  const auto num_ops = static_cast<size_t>(plan.num_ops());
  begins_.reserve(num_ops + 1);
  accesses_.reserve(AccessesPerOp * num_ops);
  for (size_t s = 0; s < NumSections; ++s) {
    first_ops_[s] = begins_.size();
    for (const Op& op : plan.sections[s].ops) {
      begins_.push_back(accesses_.size());
      const AccessList own = AccessesOf(op.body);
      accesses_.insert(accesses_.end(), own.begin(), own.end());
    }
  }
  begins_.push_back(accesses_.size());
}

}  // namespace shardc
