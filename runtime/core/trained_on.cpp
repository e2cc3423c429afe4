#include "runtime/core/trained_on.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "compiler/data/wider_ids.h"

namespace shardc {

/// Returns the fingerprints of the token streams that a run trained on.
static auto StreamsOf(const ManifestData& data) -> std::set<std::string> {
  std::set<std::string> streams;
  for (const ManifestSource& source : data.sources) {
    streams.insert(source.fingerprint);
  }
  if (data.sources.empty()) {
    // Those of targets and of evaluation files follow.
    streams.insert(data.fingerprint.substr(0, data.fingerprint.find("; ")));
  }
  return streams;
}

/// Returns true if the files of data.eval are a stream that the run trained on, or if the recipe at hand trains on one
/// of them.
static auto EvaluatesTrainingFiles(const std::set<std::string>& streams, const DataSource& data,
                                   const TokenReader& tokens) -> bool {
  constexpr std::string_view Begin = "; evaluation: ";
  const std::string whole = tokens.Fingerprint();
  const size_t at = whole.rfind(Begin);
  std::set<std::string> trained;
  for (const TokenSource& source : data.sources) {
    std::ranges::transform(source.files, std::inserter(trained, trained.end()), IdentityOfPath);
  }
  return (at != std::string::npos && streams.contains(whole.substr(at + Begin.size()))) ||
         std::ranges::any_of(data.eval_files,
                             [&](const std::string& path) { return trained.contains(IdentityOfPath(path)); });
}

auto TrainedOnText(const ManifestData& there, const Plan& plan, const TokenReader& tokens) -> std::string {
  constexpr std::string_view Remedy = "so that the loss may be too low; set data.eval to files that it did not read";
  const std::set<std::string> streams = StreamsOf(there);
  if (plan.data.has_eval_files()) {
    return EvaluatesTrainingFiles(streams, plan.data, tokens)
               ? fmt::format("note: data.eval names token files that the run trained on, {}", Remedy)
               : "";
  }
  const int64_t more = plan.data.eval_tokens - there.eval_tokens;
  const auto fingerprints = tokens.SourceFingerprints();
  const auto known =
      std::ranges::count_if(fingerprints, [&](const std::string& text) { return streams.contains(text); });
  return more > 0 && known > 0 && !plan.data.is_synthetic()
             ? fmt::format(
                   "note: data.eval_tokens is {}, and the run held out {}: it may have trained on the other {}, {}",
                   plan.data.eval_tokens, there.eval_tokens, more, Remedy)
             : "";
}

}  // namespace shardc
