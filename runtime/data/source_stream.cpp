#include "runtime/data/source_stream.h"

#include "compiler/base/check.h"
#include "compiler/data/shuffle.h"

namespace shardc {

auto SourceStream::Open(const DataSource& data, const TokenSource& source) -> ErrorOr<SourceStream> {
  CHECK(!source.files.empty(), "source {} names no files", source.name);
  SourceStream stream;
  ASSIGN_OR_RETURN(
      stream.tokens_,
      IdStream::Open(
          {.name = source.name, .purpose = TokenPurpose(source), .range = TokenRange(data), .paths = source.files},
          data.format));
  stream.order_ = data.order;
  stream.seed_ = source.name.empty() ? data.seed : DerivedSeed(data.seed, source.name);
  stream.seq_ = data.seq;
  stream.eval_tokens_ = data.eval_tokens;
  ASSIGN_OR_RETURN(const auto splits, CutIntoSamples(data, source, stream.num_tokens(), source.files.size()));
  stream.num_train_samples_ = splits.train_samples;
  stream.num_eval_samples_ = splits.eval_samples;
  return stream;
}

auto SourceStream::BeginOfTrain(int64_t index) const -> int64_t {
  CHECK(index >= 0, "sample {}", index);
  const int64_t epoch = index / num_train_samples_;
  const int64_t within = index % num_train_samples_;
  switch (order_) {
    case SampleOrder::Shuffled: return seq_ * ShuffledIndex(within, num_train_samples_, seed_, epoch);
    case SampleOrder::Sequential: return seq_ * within;
  }
  CHECK(false, "order {}", static_cast<int>(order_));
}

auto SourceStream::BeginOfEval(int64_t index) const -> int64_t {
  CHECK(0 <= index && index < num_eval_samples_, "sample {} of {}", index, num_eval_samples_);
  return num_tokens() - eval_tokens_ + index * seq_;
}

}  // namespace shardc
