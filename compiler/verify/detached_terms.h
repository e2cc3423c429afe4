// Terms that are computed from parameters that are trained, and not by the forward: no gradient flows through them. If
// the forward read one, the backward that is derived from it would take the parameter for a constant there.
#pragma once

#include <unordered_map>
#include <unordered_set>

#include "compiler/verify/symbolic.h"

namespace shardc {

class DetachedTerms {
 public:
  DetachedTerms(const Plan& plan, Terms* terms);

  /// Notes what the op that `run` ran last made. Gathers and copies of parameters move them, and are not noted.
  auto Note(const Op& op, const SymbolicRun& run) -> void;
  /// Returns true if the term is detached, or made of parts that are.
  auto IsDetached(TermId id) const -> bool;

 private:
  /// Returns true if the term is computed from a trained parameter.
  auto IsTrained(TermId id) -> bool;

  const Terms& terms_;
  std::unordered_map<TermId, bool> is_trained_;
  std::unordered_set<TermId> of_forward_;
  std::unordered_set<TermId> detached_;
};

}  // namespace shardc
