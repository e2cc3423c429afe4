// What a report tells of the documents in samples.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/cost/source_shares.h"
#include "compiler/data/document_facts.h"

namespace shardc {

/// Returns what the files of a plan that splits documents hold, and puts the samples that they fill into `mixture`.
/// Returns nothing if the files are not here, or take longer to look at than a report may. Errors: a run would refuse
/// the files.
auto CountDocuments(const Plan& plan, const std::vector<SourceFacts>& facts, MixtureUse& mixture)
    -> ErrorOr<std::optional<RunDocuments>>;

/// Returns the lines of the report for people; empty if documents are nothing to the model.
auto DocumentLines(const Plan& plan, const std::optional<RunDocuments>& documents) -> std::string;

}  // namespace shardc
