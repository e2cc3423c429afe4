#include "compiler/report/document_lines.h"

#include <algorithm>

#include "compiler/base/processor.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/split.h"

namespace shardc {

auto CountDocuments(const Plan& plan, const std::vector<SourceFacts>& facts, MixtureUse& mixture)
    -> ErrorOr<std::optional<RunDocuments>> {
  const auto is_known = [](const SourceFacts& source) { return source.is_known; };
  if (!plan.data.splits_documents() || plan.data.is_synthetic() || !std::ranges::all_of(facts, is_known) ||
      !IsQuickToLookAt(plan)) {
    return std::optional<RunDocuments>();
  }
  ASSIGN_OR_RETURN(auto documents, LookAtDocuments(plan, NumCores()));
  for (size_t i = 0; i < mixture.sources.size(); ++i) {
    mixture.sources[i].epoch_samples = documents.sources[i].samples;
  }
  return std::optional(std::move(documents));
}

auto DocumentLines(const Plan& plan, const std::optional<RunDocuments>& documents) -> std::string {
  if (!plan.data.splits_documents()) {
    return "";
  }
  if (!documents) {
    return plan.data.is_synthetic()
               ? "documents: each sample is one\n\n"
               : "documents: split; `shardc check --data` counts them where the token files are\n\n";
  }
  const std::string lines = DocumentsText(plan, *documents);
  std::string text;
  for (const std::string_view line : SplitAt(lines, "\n")) {
    text += line.empty() ? "" : Wrapped(std::string(line), 2);
  }
  return text + "\n";
}

}  // namespace shardc
