#include "runtime/data/token_reader.h"

#include <algorithm>

#include "runtime/data/shuffle.h"

namespace shardc {

auto TokenReader::Open(const DataSource& source, const Heads& heads) -> ErrorOr<std::unique_ptr<TokenReader>> {
  CHECK(source.seq > 0 && source.vocab > 0 && source.eval_tokens >= 0, "seq {}, vocab {}, eval_tokens {}", source.seq,
        source.vocab, source.eval_tokens);
  if (source.files.empty()) {
    return Fail(ExitCode::RecipeRejected, "no token files: `data.tokens` is empty");
  }
  std::unique_ptr<TokenReader> reader(new TokenReader(source));
  auto tokens = IdStream::Open(source.files, source.format, source.vocab,
                               {.noun = "token", .key = "data.tokens", .vocab = "`model.vocab`", .none = 0});
  if (!tokens) {
    return tokens.error();
  }
  reader->tokens_ = *std::move(tokens);

  // A sample needs one id more than it has positions: the last target.
  const int64_t seq = source.seq;
  const int64_t eval_tokens = source.eval_tokens;
  const int64_t num_tokens = reader->num_tokens();
  const int64_t train_tokens = num_tokens - eval_tokens;
  reader->num_train_samples_ = train_tokens > 0 ? (train_tokens - 1) / seq : 0;
  reader->num_eval_samples_ = eval_tokens > 0 ? (eval_tokens - 1) / seq : 0;
  if (reader->num_train_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "{} tokens in {} file{}, {} of them held out by `data.eval_tokens`: {} left to train on, and one "
                "sample takes {} "
                "(`model.seq` + 1)",
                num_tokens, source.files.size(), source.files.size() == 1 ? "" : "s", eval_tokens,
                std::max<int64_t>(train_tokens, 0), seq + 1);
  }
  if (eval_tokens > 0 && reader->num_eval_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "`data.eval_tokens` is {}, and one sample takes {} (`model.seq` + 1); hold out more, or 0 for none",
                eval_tokens, seq + 1);
  }
  for (const TargetHead& head : heads) {
    auto targets = IdStream::Open(
        head.files, source.format, head.vocab,
        {.noun = "target", .key = "targets", .vocab = fmt::format("the vocabulary of head {}", head.name), .none = 1});
    if (!targets) {
      return targets.error();
    }
    if ((*targets)->num_ids() != num_tokens) {
      return Fail(ExitCode::RecipeRejected,
                  "the target files of head {} hold {} ids, and the token files {}: there is one for each token",
                  head.name, (*targets)->num_ids(), num_tokens);
    }
    reader->targets_.Add(*std::move(targets));
  }
  reader->heads_ = heads;
  reader->ids_.resize(static_cast<size_t>(seq) + 1);
  return reader;
}

auto TokenReader::Fingerprint() const -> std::string {
  std::string text = tokens_->Fingerprint();
  for (const HeadId id : heads_.ids()) {
    text += fmt::format("; targets of {}: {}", heads_[id].name, targets_[id]->Fingerprint());
  }
  return text;
}

auto TokenReader::BeginOf(Split split, int64_t index) const -> std::optional<int64_t> {
  CHECK(index >= 0, "sample {}", index);
  if (split == Split::Eval) {
    return index < num_eval_samples_ ? std::optional(num_tokens() - source_.eval_tokens + index * source_.seq)
                                     : std::nullopt;
  }
  const int64_t epoch = index / num_train_samples_;
  const int64_t within = index % num_train_samples_;
  return source_.seq * (source_.order == SampleOrder::Shuffled
                            ? ShuffledIndex(within, num_train_samples_, source_.seed, epoch)
                            : within);
}

auto TokenReader::ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride, HeadId head)
    -> Status {
  const int64_t seq = source_.seq;
  const auto begin = BeginOf(split, index);
  if (begin) {
    RETURN_IF_ERROR(tokens_->Read(*begin, seq + 1, ids_.data()));
  }
  for (int64_t s = 0; s < seq; ++s) {
    tokens[s * stride] = begin ? ids_[static_cast<size_t>(s)] : 0;
    targets[s * stride] = begin ? ids_[static_cast<size_t>(s) + 1] : -1;
  }
  return head.valid() ? ReadTargets(split, index, head, targets, stride) : Success{};
}

auto TokenReader::ReadTargets(Split split, int64_t index, HeadId head, int32_t* targets, int64_t stride) -> Status {
  const int64_t seq = source_.seq;
  const auto begin = BeginOf(split, index);
  if (begin) {
    RETURN_IF_ERROR(targets_[head]->Read(*begin + 1, seq, ids_.data()));
  }
  for (int64_t s = 0; s < seq; ++s) {
    targets[s * stride] = begin ? ids_[static_cast<size_t>(s)] : -1;
  }
  return Success{};
}

}  // namespace shardc
