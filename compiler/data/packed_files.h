// How the documents of a plan's files are packed: the rule of each split, and the rows of data.eval, which the plan
// states.
#pragma once

#include "compiler/data/packed_split.h"

namespace shardc {

/// Returns the seed of the order of a source's samples: one of its own, if it has a name.
auto SeedOf(const DataSource& data, const TokenSource& source) -> uint64_t;
auto TrainRule(const DataSource& data, const TokenSource& source) -> PackRule;
/// Returns the rule of held-out documents, whose order is that of the files.
auto EvalRule(const DataSource& data, TooLong too_long) -> PackRule;

/// Counts the rows that the files of data.eval fill. Errors: those of DocumentTable::Find and PackedSplit::Create.
auto CountEvalRows(const DataSource& data) -> ErrorOr<int64_t>;
/// Checks that the files of data.eval fill as many samples as when the plan was made. Errors:
/// ExitCode::RecipeRejected.
auto CheckEvalSamples(const DataSource& data, int64_t num_samples) -> Status;

}  // namespace shardc
