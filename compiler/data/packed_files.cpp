#include "compiler/data/packed_files.h"

#include "compiler/data/shuffle.h"

namespace shardc {

auto SeedOf(const DataSource& data, const TokenSource& source) -> uint64_t {
  return source.name.empty() ? data.seed : DerivedSeed(data.seed, source.name);
}

auto TrainRule(const DataSource& data, const TokenSource& source) -> PackRule {
  return {.seq = data.seq, .too_long = source.too_long, .order = data.order, .seed = SeedOf(data, source)};
}

auto EvalRule(const DataSource& data, TooLong too_long) -> PackRule {
  return {.seq = data.seq, .too_long = too_long, .order = SampleOrder::Sequential};
}

auto CountEvalRows(const DataSource& data) -> ErrorOr<int64_t> {
  ASSIGN_OR_RETURN(auto documents, DocumentTable::Find(EvalList(data), data.format, data.document_end));
  const Interval ids{0, documents.num_ids()};
  ASSIGN_OR_RETURN(auto split, PackedSplit::Create(std::make_shared<const DocumentTable>(std::move(documents)), ids,
                                                   EvalRule(data, data.too_long)));
  return split.RowsOfEpoch(0);
}

auto CheckEvalSamples(const DataSource& data, int64_t num_samples) -> Status {
  return num_samples == data.eval_file_samples
             ? Status(Success{})
             : Fail(ExitCode::RecipeRejected,
                    "the documents of `data.eval` fill {} samples, and they filled {} when the plan was made; make the "
                    "plan again",
                    num_samples, data.eval_file_samples);
}

}  // namespace shardc
