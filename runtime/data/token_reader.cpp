#include "runtime/data/token_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/base/check.h"
#include "compiler/plan/run_samples.h"

namespace shardc {

auto TokenReader::Open(const DataSource& data, const Heads& heads, RunSize run)
    -> ErrorOr<std::unique_ptr<TokenReader>> {
  CHECK(data.seq > 0 && data.vocab > 0 && data.eval_tokens >= 0, "seq {}, vocab {}, eval_tokens {}", data.seq,
        data.vocab, data.eval_tokens);
  CHECK(heads.empty() || !data.is_mixture(), "{} sources, {} heads", data.sources.size(), heads.size());
  RETURN_IF_ERROR(CheckNamesFiles(data));
  std::unique_ptr<TokenReader> reader(new TokenReader(data));
  reader->run_ = run;
  reader->ids_.resize(static_cast<size_t>(data.seq) + 1);
  if (data.is_synthetic()) {
    CHECK(heads.empty() && !data.is_mixture(), "{} heads beside tokens that are made", heads.size());
    reader->synthetic_.emplace(data);
    return reader;
  }
  for (const TokenSource& source : data.sources) {
    ASSIGN_OR_RETURN(auto stream, SourceStream::Open(data, source));
    reader->sources_.push_back(std::move(stream));
  }
  if (data.has_eval_files()) {
    ASSIGN_OR_RETURN(auto eval, IdStream::Open(EvalList(data), data.format));
    RETURN_IF_ERROR(CheckEvalTokens(data, eval->num_ids()));
    reader->eval_ = std::move(eval);
  }
  if (data.is_mixture()) {
    ASSIGN_OR_RETURN(reader->mixture_, Mixture::Create(data, run.samples_per_step, run.steps));
  }
  for (const TargetHead& head : heads) {
    ASSIGN_OR_RETURN(
        auto targets,
        IdStream::Open({.name = head.name, .purpose = TargetPurpose(), .range = TargetRange(head), .paths = head.files},
                       data.format));
    RETURN_IF_ERROR(CompareTargets("head " + head.name, targets->num_ids(), reader->num_tokens()));
    reader->targets_.Add(std::move(targets));
  }
  reader->heads_ = heads;
  return reader;
}

template <class Count>
static auto SumOver(const std::vector<SourceStream>& sources, Count&& count) -> int64_t {
  return std::accumulate(sources.begin(), sources.end(), int64_t{0},
                         [&](int64_t sum, const SourceStream& source) { return sum + count(source); });
}

auto TokenReader::num_tokens() const -> int64_t {
  return SumOver(sources_, [](const SourceStream& source) { return source.num_tokens(); });
}

auto TokenReader::num_train_samples() const -> int64_t {
  return SumOver(sources_, [](const SourceStream& source) { return source.num_train_samples(); });
}

auto TokenReader::num_eval_samples() const -> int64_t {
  return synthetic_ ? synthetic_->num_eval_samples()
         : eval_    ? (eval_->num_ids() - 1) / data_.seq
                    : SumOver(sources_, [](const SourceStream& source) { return source.num_eval_samples(); });
}

auto TokenReader::SourceFingerprints() const -> std::vector<std::string> {
  std::vector<std::string> fingerprints;
  if (synthetic_) {
    fingerprints.push_back(synthetic_->Fingerprint());
  }
  for (const SourceStream& source : sources_) {
    fingerprints.push_back(source.Fingerprint());
  }
  return fingerprints;
}

auto TokenReader::Fingerprint() const -> std::string {
  std::string text = synthetic_ ? synthetic_->Fingerprint() : "";
  for (size_t s = 0; s < sources_.size(); ++s) {
    const std::string& name = data_.sources[s].name;
    text += fmt::format("{}{}{}{}", s == 0 ? "" : "; ", name, name.empty() ? "" : ": ", sources_[s].Fingerprint());
  }
  for (const HeadId id : heads_.ids()) {
    text += fmt::format("; targets of {}: {}", heads_[id].name, targets_[id]->Fingerprint());
  }
  if (eval_) {
    text += fmt::format("; evaluation: {}", eval_->Fingerprint());
  }
  return text;
}

auto TokenReader::CountRun() const -> ErrorOr<std::vector<SourceUse>> {
  std::vector<SourceUse> uses;
  if (!mixture_) {
    return uses;
  }
  ASSIGN_OR_RETURN(const auto run, CountRunSamples(data_, run_.samples_per_step, run_.steps));
  for (size_t s = 0; s < sources_.size(); ++s) {
    uses.push_back({.name = data_.sources[s].name,
                    .samples = run.samples[s],
                    .is_exact = run.is_exact,
                    .epoch_samples = sources_[s].num_train_samples()});
  }
  return uses;
}

auto TokenReader::PositionOf(Split split, int64_t index) -> ErrorOr<std::optional<SourcePosition>> {
  CHECK(index >= 0, "sample {}", index);
  if (split == Split::Eval) {
    return PositionOfEval(index);
  }
  MixedSample sample{0, index};
  if (mixture_) {
    ASSIGN_OR_RETURN(sample, mixture_->At(index));
  }
  SourceStream& source = sources_[sample.source];
  return std::optional(
      SourcePosition{&source.tokens(), source.BeginOfTrain(data_.sources[sample.source].first_sample + sample.index)});
}

auto TokenReader::PositionOfEval(int64_t index) -> std::optional<SourcePosition> {
  if (eval_) {
    return index < num_eval_samples() ? std::optional(SourcePosition{eval_.get(), index * data_.seq}) : std::nullopt;
  }
  for (SourceStream& source : sources_) {
    if (index < source.num_eval_samples()) {
      return SourcePosition{&source.tokens(), source.BeginOfEval(index)};
    }
    index -= source.num_eval_samples();
  }
  return std::nullopt;
}

auto TokenReader::ReadIds(Split split, int64_t index) -> ErrorOr<bool> {
  if (synthetic_) {
    const bool exists = split == Split::Train || index < num_eval_samples();
    if (exists) {
      synthetic_->Make(split, split == Split::Train ? data_.sources.front().first_sample + index : index, ids_.data());
    }
    return exists;
  }
  ASSIGN_OR_RETURN(const auto position, PositionOf(split, index));
  if (position.has_value()) {
    RETURN_IF_ERROR(position->ids->Read(position->begin, data_.seq + 1, ids_.data()));
  }
  return position.has_value();
}

auto TokenReader::ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride, HeadId head)
    -> Status {
  const int64_t seq = data_.seq;
  if (split == Split::Eval && eval_ids_) {
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t at = index * seq + s;
      tokens[s * stride] = at < std::ssize(*eval_ids_) ? (*eval_ids_)[static_cast<size_t>(at)] : 0;
      targets[s * stride] = -1;
    }
    return Success{};
  }
  ASSIGN_OR_RETURN(const auto read, ReadIds(split, index));
  const bool exists = read;
  for (int64_t s = 0; s < seq; ++s) {
    tokens[s * stride] = exists ? ids_[static_cast<size_t>(s)] : 0;
    targets[s * stride] = exists ? ids_[static_cast<size_t>(s) + 1] : -1;
  }
  return head.valid() ? ReadTargets(split, index, head, targets, stride) : Success{};
}

auto TokenReader::ReadDocuments(Split split, int64_t index, int32_t* starts, int32_t* positions, int64_t stride)
    -> Status {
  const bool exists = split == Split::Train || eval_ids_ || index < num_eval_samples();
  for (int64_t s = 0; s < data_.seq; ++s) {
    starts[s * stride] = exists ? 0 : static_cast<int32_t>(s);
    positions[s * stride] = exists ? static_cast<int32_t>(s) : 0;
  }
  return Success{};
}

auto TokenReader::ReadTargets(Split split, int64_t index, HeadId head, int32_t* targets, int64_t stride) -> Status {
  const int64_t seq = data_.seq;
  ASSIGN_OR_RETURN(const auto position, PositionOf(split, index));
  const bool exists = position.has_value();
  if (exists) {
    RETURN_IF_ERROR(targets_[head]->Read(position->begin + 1, seq, ids_.data()));
  }
  for (int64_t s = 0; s < seq; ++s) {
    targets[s * stride] = exists ? ids_[static_cast<size_t>(s)] : -1;
  }
  return Success{};
}

auto TokenReader::HoldsEvalTarget() -> ErrorOr<bool> {
  if (std::none_of(heads_.begin(), heads_.end(), [](const TargetHead& head) { return head.is_own; })) {
    return num_eval_samples() > 0;
  }
  std::vector<int32_t> targets(static_cast<size_t>(data_.seq));
  for (const HeadId head : heads_.ids()) {
    for (int64_t i = 0; i < num_eval_samples(); ++i) {
      RETURN_IF_ERROR(ReadTargets(Split::Eval, i, head, targets.data(), 1));
      if (std::ranges::any_of(targets, [](int32_t target) { return target >= 0; })) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace shardc
