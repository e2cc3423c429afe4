#include "runtime/data/source_stream.h"

#include <algorithm>

#include "compiler/base/check.h"
#include "runtime/data/shuffle.h"

namespace shardc {

auto SourceStream::Open(const DataSource& data, const TokenSource& source) -> ErrorOr<SourceStream> {
  const std::string key = source.name.empty() ? "data.tokens" : "data.source.tokens";
  const std::string of_source = source.name.empty() ? "" : fmt::format("source {}: ", source.name);
  if (source.files.empty()) {
    return Fail(ExitCode::RecipeRejected, "{}no token files: `{}` is empty", of_source, key);
  }
  SourceStream stream;
  auto tokens = IdStream::Open(source.files, data.format, data.vocab,
                               {.noun = "token", .key = key, .vocab = "`model.vocab`", .none = 0});
  if (!tokens) {
    return tokens.error();
  }
  stream.tokens_ = *std::move(tokens);
  stream.order_ = data.order;
  stream.seed_ = source.name.empty() ? data.seed : DerivedSeed(data.seed, source.name);
  stream.seq_ = data.seq;
  stream.eval_tokens_ = data.eval_tokens;

  // A sample needs one id more than it has positions: the last target.
  const int64_t num_tokens = stream.num_tokens();
  const int64_t train_tokens = num_tokens - data.eval_tokens;
  stream.num_train_samples_ = train_tokens > 0 ? (train_tokens - 1) / data.seq : 0;
  stream.num_eval_samples_ = data.eval_tokens > 0 ? (data.eval_tokens - 1) / data.seq : 0;
  if (stream.num_train_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "{}{} tokens in {} file{}, {} of them held out by `data.eval_tokens`: {} left to train on, and one "
                "sample takes {} "
                "(`model.seq` + 1)",
                of_source, num_tokens, source.files.size(), source.files.size() == 1 ? "" : "s", data.eval_tokens,
                std::max<int64_t>(train_tokens, 0), data.seq + 1);
  }
  if (data.eval_tokens > 0 && stream.num_eval_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "`data.eval_tokens` is {}, and one sample takes {} (`model.seq` + 1); hold out more, or 0 for none",
                data.eval_tokens, data.seq + 1);
  }
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
