#include "compiler/driver/document_lines.h"

#include <algorithm>

#include "compiler/base/processor.h"
#include "compiler/base/text/numbers_and_lines.h"
#include "compiler/base/text/split.h"
#include "compiler/data/document_facts.h"

namespace shardc {

auto DocumentLines(const Plan& plan, const std::vector<SourceFacts>& facts, MixtureUse& mixture)
    -> ErrorOr<std::string> {
  const auto is_known = [](const SourceFacts& source) { return source.is_known; };
  if (plan.data.is_synthetic() || !std::ranges::all_of(facts, is_known) || !IsQuickToLookAt(plan)) {
    return plan.data.is_synthetic()
               ? std::string("documents: each sample is one\n\n")
               : std::string("documents: split; `shardc check --data` counts them where the token files are\n\n");
  }
  ASSIGN_OR_RETURN(const auto documents, LookAtDocuments(plan, NumCores()));
  for (size_t i = 0; i < mixture.sources.size(); ++i) {
    mixture.sources[i].epoch_samples = documents[i].samples;
  }
  const std::string lines = DocumentsText(plan, documents);
  std::string text;
  for (const std::string_view line : SplitAt(lines, "\n")) {
    text += line.empty() ? "" : Wrapped(std::string(line), 2);
  }
  return text + "\n";
}

}  // namespace shardc
