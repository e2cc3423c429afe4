// Every combination that a search of --fit may choose.
#pragma once

#include "compiler/fit/trials.h"

namespace shardc {

/// Subjects that a layout does not have are as they are.
inline auto AllCombinations(const AllOffers& offers) -> Combinations {
  Combinations all{AsItIs(offers)};
  for (size_t i = 0; i < NumSubjects; ++i) {
    Combinations wider;
    for (Combination one : all) {
      for (one[i] = 0; one[i] < offers[i].offers.size(); ++one[i]) {
        if (one[i] == offers[i].as_is || Applies(static_cast<Subject>(i), LayoutOf(offers, one))) {
          wider.push_back(one);
        }
      }
    }
    all = std::move(wider);
  }
  return all;
}

/// Returns what each of them sets.
inline auto AllSetsOf(const AllOffers& offers) -> std::vector<std::vector<std::string>> {
  std::vector<std::vector<std::string>> sets;
  for (const Combination& one : AllCombinations(offers)) {
    sets.push_back(KnobOf(offers, one).sets);
  }
  return sets;
}

}  // namespace shardc
