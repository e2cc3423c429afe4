// What a report tells of the documents in samples.
#pragma once

#include <string>
#include <vector>

#include "compiler/cost/source_shares.h"

namespace shardc {

/// Returns lines on the documents of a plan that splits them, and puts the samples that they fill into `mixture`.
/// Errors: a run would refuse the files.
auto DocumentLines(const Plan& plan, const std::vector<SourceFacts>& facts, MixtureUse& mixture)
    -> ErrorOr<std::string>;

}  // namespace shardc
