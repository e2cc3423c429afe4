// The terms of the loss, as the recipe names them: the model's own head, and each `[[loss.head]]`.
#pragma once

#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "compiler/recipe/recipe.h"

namespace shardc {

/// One term of the loss: the mean over its targets in the whole global batch, times its weight.
struct LossTerm {
  /// The head of the targets; unset if the next token is predicted.
  HeadId head;
  std::string name;
  /// The prefix of its values; empty for the model's own head.
  std::string prefix;
  double weight = 1;
  Origin origin;
  /// The key that names the files of its targets.
  Origin files;
  /// Host memory for the targets of a step.
  BufferId buffer = {};
  /// Scalars of its mean, of a step and of an evaluation; unset if it is the only term.
  ScalarId loss = {};
  ScalarId eval_loss = {};
};

/// Returns the key that names the files of tokens.
auto OriginOfTokens(const Recipe& recipe) -> Origin;

/// Returns the terms, the model's own head first. Their memory and scalars are unset.
auto LossTermsOf(const Recipe& recipe) -> std::vector<LossTerm>;

}  // namespace shardc
