#include "compiler/verify/detached_terms.h"

#include <algorithm>

namespace shardc {

DetachedTerms::DetachedTerms(const Plan& plan, Terms* terms) : terms_(*terms) {
  for (const SubVector& sub_vector : plan.sub_vectors) {
    for (const ValueId id : {sub_vector.shard, sub_vector.compute_copy}) {
      if (sub_vector.trainable && id.valid()) {
        const BufferId buffer = plan.values[id].buffer;
        is_trained_[terms->Memory(buffer, plan.buffers[buffer].bytes.value)] = true;
      }
    }
  }
}

auto DetachedTerms::IsTrained(TermId id) -> bool {
  // What a term is made of is older than the term; a plan may nest terms deeper than a stack holds calls.
  std::vector<TermId> open{id};
  while (!open.empty()) {
    const TermId top = open.back();
    if (is_trained_.contains(top)) {
      open.pop_back();
      continue;
    }
    bool trained = false;
    bool known = true;
    const auto look = [&](TermId part) {
      const auto found = is_trained_.find(part);
      if (found == is_trained_.end()) {
        open.push_back(part);
        known = false;
      } else {
        trained = trained || found->second;
      }
    };
    const Term& term = terms_[top];
    std::ranges::for_each(term.operands, look);
    std::ranges::for_each(term.ranges, look, &TermRange::term);
    if (known) {
      is_trained_[top] = trained;
      open.pop_back();
    }
  }
  return is_trained_.at(id);
}

auto DetachedTerms::Note(const Op& op, const SymbolicRun& run) -> void {
  for (const auto& [value, written] : run.touched()) {
    const TermId made = terms_[written].kind == TermKind::Sum ? terms_[written].operands[1] : written;
    // What the op reads, and what it moves, others made.
    if (terms_[made].kind != TermKind::Result || terms_[made].op != &op) {
      continue;
    }
    if (op.phase == Phase::Forward) {
      of_forward_.insert(made);
    } else if (!of_forward_.contains(made) && IsTrained(made)) {
      detached_.insert(made);
    }
  }
}

auto DetachedTerms::IsDetached(TermId id) const -> bool {
  for (; terms_[id].kind == TermKind::Sum; id = terms_[id].operands[0]) {
    if (detached_.contains(terms_[id].operands[1])) {
      return true;
    }
  }
  return detached_.contains(id) ||
         std::ranges::any_of(terms_[id].ranges, [&](const TermRange& range) { return detached_.contains(range.term); });
}

}  // namespace shardc
