// How the ids of a source are cut into samples: the last `eval_tokens` of them are held out for evaluation, the others
// are trained on. A sample needs one id more than it has positions, because the last position has a target too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "compiler/base/error_or.h"
#include "compiler/plan/plan.h"

namespace shardc {

struct Splits {
  /// Samples of an epoch; if documents are packed, the least number that their tokens can fill.
  int64_t train_samples = 0;
  int64_t eval_samples = 0;
};

/// Counts the samples of each split of so many ids. Requires: seq > 0.
auto CountSamples(int64_t seq, int64_t eval_tokens, int64_t num_tokens) -> Splits;

/// Of a source with so many ids in so many files.
/// Errors: ExitCode::RecipeRejected if a split that is asked for has no sample, with the numbers and the remedy.
auto CutIntoSamples(const DataSource& data, const TokenSource& source, int64_t num_tokens, size_t num_files)
    -> ErrorOr<Splits>;

}  // namespace shardc
