#include "compiler/report/data_json.h"

namespace shardc {

using Json = nlohmann::ordered_json;

static auto FactsJson(const DataSource& data, const DocumentFacts& of) -> Json {
  const DocumentCounts& counts = of.counts;
  return {{"documents", counts.documents},
          {"empty", of.empty},
          {"shortest", counts.shortest},
          {"longest", counts.longest},
          {"samples", of.samples},
          {"targets", of.targets},
          {"padding", PaddingShare(data, of)},
          {"attention", AttentionShare(data, of)},
          {"cut", counts.cut},
          {"dropped", counts.dropped},
          {"split", counts.split},
          {"lost_tokens", counts.lost_tokens},
          {"with_targets", of.with_targets},
          {"lost", of.lost}};
}

static auto DocumentsJson(const DataSource& data, const RunDocuments& documents) -> Json {
  Json json;
  for (const DocumentFacts& of : documents.sources) {
    if (of.is_eval) {
      json["eval"] = FactsJson(data, of);
    } else {
      json["sources"].push_back({{"name", of.source}});
      json["sources"].back().update(FactsJson(data, of));
    }
  }
  if (const auto& steps = documents.per_step) {
    json["targets_per_step"] = {{"steps", steps->steps},
                                {"least", steps->least},
                                {"mean", steps->mean},
                                {"most", steps->most},
                                {"without", steps->without}};
  }
  return json;
}

auto DataJson(const Report& report) -> nlohmann::ordered_json {
  const DataSource& data = report.plan->data;
  const MixtureUse& mixture = report.mixture;
  Json json;
  for (const SourceShare& source : mixture.sources) {
    json["sources"].push_back(
        {{"name", source.name}, {"weight", source.weight}, {"samples", source.samples}, {"fraction", source.fraction}});
    if (source.is_known) {
      json["sources"].back().update({{"tokens", source.tokens},
                                     {"epoch_samples", source.epoch_samples},
                                     {"eval_samples", source.eval_samples},
                                     {"epochs", source.epochs()}});
    }
  }
  if (data.is_synthetic()) {
    json["synthetic"] = ToText(data.synthetic);
  }
  if (!mixture.sources.empty()) {
    json["exact"] = mixture.is_exact;
    json["fault"] = mixture.fault;
  }
  if (report.documents) {
    json["documents"] = DocumentsJson(data, *report.documents);
  }
  return json;
}

}  // namespace shardc
