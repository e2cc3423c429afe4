// The terms of the loss, as the recipe names them: the model's own head, and each `[[loss.head]]`.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// One term of the loss: the mean over its targets in the whole global batch, times its weight.
struct LossTerm {
  /// Of the targets; unset where the next token is predicted.
  HeadId head;
  std::string name;
  /// Of its values: nothing for the model's own head.
  std::string prefix;
  double weight = 1;
  Origin origin;
  /// Where the files of its targets are named.
  Origin files;
  /// Host memory for the targets of a step.
  BufferId buffer = {};
  /// Where its mean is told, of a step and of an evaluation. Unset where it is the only term.
  ScalarId loss = {};
  ScalarId eval_loss = {};
};

/// Where the files of tokens are named.
auto OriginOfTokens(const Recipe& recipe) -> Origin;

/// The model's own head first. Their memory and scalars are unset.
auto LossTermsOf(const Recipe& recipe) -> std::vector<LossTerm>;

}  // namespace shardc
