// Plans that are wrong in one thing, as text: the files of tests/verify/cases. A case is, with an empty line after it,
//
//   case: what is wrong, in a phrase
//   plan: mesh.tp=2 batch.global=4        the plan that it begins from: the sample of tests/support/plan_samples.h with
//   these
//                                         keys of the recipe; left out, what such a line above the cases of the file
//                                         says, or the sample as it is
//   op: fill out=f32[8] value=0           instead: a plan of this op alone, on one rank, whose operands hold zeros. For
//                                         each operand the type of a value, which gets the field's name. `y=x` puts y
//                                         on the bytes of x, in its type. Such a line above cases holds for all cases
//                                         after it
//   after: schedule                       that plan as this pass leaves it; left out, the whole plan
//   change: drop step all_gather          one change, in the words of tests/support/plan_lines.h; more lines where one
//   thing
//                                         of a plan is written in several places
//   expect: read-undefined                the label of every finding that the verifier has
//
// The verifier accepts the plan without the change. SOURCE_DIR in a key's value is where the sources lie.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "compiler/verify/verify.h"

namespace shardc {

struct BrokenPlan {
  /// `file:line` of the case.
  std::string place;
  std::string what;
  std::string plan;
  std::string op;
  std::string after;
  std::vector<std::string> changes;
  std::string expect;
};

/// The cases of one file. A line that is none of the above is given to `errors`.
auto ReadBrokenPlans(const std::filesystem::path& path, std::vector<std::string>& errors) -> std::vector<BrokenPlan>;

struct BrokenPlanResult {
  /// Why the case is none: a change that names what is not there, a text that is no plan, a sample that is wrong
  /// itself.
  std::string error;
  std::vector<std::string> findings;
};
auto JudgeBrokenPlan(const BrokenPlan& broken) -> BrokenPlanResult;

/// The label at the end of a finding.
auto LabelOf(const std::string& finding) -> std::string;

}  // namespace shardc
