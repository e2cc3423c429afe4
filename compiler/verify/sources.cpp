// Where samples come from: one stream of tokens, or sources with names and weights that read, whose shares of a step
// can be counted. Files are looked for by whoever opens them: a plan that is printed without paths names none.
#include <unordered_set>

#include "compiler/expr/expr.h"
#include "compiler/plan/sample_shares.h"
#include "compiler/verify/internal.h"

namespace shardc {

/// An id is made of 32 random bits, and has 31.
constexpr int64_t MostSyntheticIds = int64_t{1} << 31;

static auto VerifyMixture(const Plan& plan, Findings& findings) -> void {
  const DataSource& data = plan.data;
  std::unordered_set<std::string_view> names;
  for (const TokenSource& source : data.sources) {
    if (source.name.empty() || !names.insert(source.name).second) {
      findings.Add("source-name"_rule, "\"{}\" is the name of two sources, or none", source.name);
    }
    if (!ParseExpr(source.weight, ExprKind::Schedule).ok()) {
      findings.Add("source-weight"_rule, "the weight of source {} does not read: {}", source.name, source.weight);
    }
  }
  if (!plan.heads.empty()) {
    findings.Add("source-targets"_rule, "targets of head {} lie beside one stream, and there are {} sources",
                 plan.heads[HeadId{0}].name, data.sources.size());
  }
  const int64_t samples = data.seq < 1 ? 0 : SamplesPerStep(plan);
  if (samples < 1 || samples > MostMixedSamples) {
    findings.Add("source-samples"_rule, "{} samples per step from {} sources, expected 1 to {}", samples,
                 data.sources.size(), MostMixedSamples);
  }
}

/// Verifies that ids which end documents are of the vocabulary, and that what is packed is documents.
static auto VerifyDocumentSettings(const DataSource& data, Findings& findings) -> void {
  const auto judge = [&](int64_t end) {
    if (end < -1 || end >= data.vocab) {
      findings.Add("source-documents"_rule, "id {} ends documents, and ids are below {}", end, data.vocab);
    }
  };
  judge(data.document_end);
  for (const TokenSource& source : data.sources) {
    judge(source.document_end);
  }
  if (data.packs() && (!data.splits_documents() || data.eval_tokens > 0)) {
    findings.Add("source-documents"_rule, "documents are packed, and they are \"{}\", {} tokens of them held out",
                 ToText(data.documents), data.eval_tokens);
  }
  if (!(data.max_lost >= 0 && data.max_lost <= 1)) {
    findings.Add("source-documents"_rule, "a share of {} of the documents may lose their targets, expected 0 to 1",
                 data.max_lost);
  }
}

auto VerifySources(const Plan& plan, Findings& findings) -> void {
  if (!plan.Established(PassKind::Build)) {
    return;
  }
  const DataSource& data = plan.data;
  if (data.has_eval_files() && (data.eval_tokens > 0 || data.is_synthetic() || !plan.heads.empty())) {
    findings.Add(
        "source-eval"_rule,
        "{} tokens to evaluate on have files of their own; {} tokens are held out of each source, {} heads have "
        "targets from files, tokens are made: {}",
        data.eval_file_tokens, data.eval_tokens, plan.heads.size(), ToText(data.synthetic));
  }
  VerifyDocumentSettings(data, findings);
  if (data.is_synthetic()) {
    const bool is_alone = data.sources.size() == 1 && plan.heads.empty() &&
                          data.sources.front() == TokenSource{.first_sample = data.sources.front().first_sample};
    if (!is_alone) {
      findings.Add("source-synthetic"_rule, "tokens are made ({}), and there are sources, files or heads besides",
                   ToText(data.synthetic));
    }
    if (data.vocab > MostSyntheticIds) {
      findings.Add("source-synthetic"_rule, "tokens are made below {}, and a vocabulary of {} is the largest",
                   data.vocab, MostSyntheticIds);
    }
  } else if (data.is_mixture()) {
    VerifyMixture(plan, findings);
  } else if (data.sources.size() > 1 || (!data.sources.empty() && !data.sources.front().weight.empty())) {
    findings.Add("source-name"_rule, "a source without a name is the only one, and has no weight");
  }
}

}  // namespace shardc
