#include "runtime/data/token_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/base/check.h"
#include "compiler/plan/run_samples.h"
#include "runtime/data/document_ends.h"

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
    ASSIGN_OR_RETURN(reader->eval_, SourceStream::OpenEval(data));
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
         : eval_    ? eval_->num_eval_samples()
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

auto TokenReader::SampleAt(Split split, int64_t index) -> ErrorOr<std::optional<SourceSample>> {
  CHECK(index >= 0, "sample {}", index);
  if (split == Split::Eval) {
    return EvalSampleAt(index);
  }
  MixedSample sample{0, index};
  if (mixture_) {
    ASSIGN_OR_RETURN(sample, mixture_->At(index));
  }
  SourceStream& source = sources_[sample.source];
  return std::optional(
      SourceSample{.source = &source,
                   .number = static_cast<int64_t>(sample.source),
                   .pieces = source.TrainSample(data_.sources[sample.source].first_sample + sample.index)});
}

auto TokenReader::EvalSampleAt(int64_t index) -> std::optional<SourceSample> {
  const auto in = [&](SourceStream& source, int64_t number) {
    return SourceSample{.source = &source, .number = number, .pieces = source.EvalSample(index)};
  };
  if (eval_) {
    return index < num_eval_samples() ? std::optional(in(*eval_, -1)) : std::nullopt;
  }
  for (size_t s = 0; s < sources_.size(); ++s) {
    if (index < sources_[s].num_eval_samples()) {
      return in(sources_[s], static_cast<int64_t>(s));
    }
    index -= sources_[s].num_eval_samples();
  }
  return std::nullopt;
}

auto TokenReader::WriteNone(int32_t* targets, int64_t stride) const -> void {
  for (int64_t s = 0; s < data_.seq; ++s) {
    targets[s * stride] = -1;
  }
}

auto TokenReader::ReadIds(const SourceSample& sample) -> Status {
  std::ranges::fill(ids_, 0);
  int32_t* place = ids_.data();
  for (const DocumentPiece& piece : sample.pieces) {
    RETURN_IF_ERROR(sample.source->tokens().Read(piece.ids.begin, piece.ids.size() + (data_.packs() ? 0 : 1), place));
    place += piece.ids.size();
  }
  return Success{};
}

auto TokenReader::ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride, HeadId head)
    -> Status {
  const int64_t seq = data_.seq;
  WriteNone(targets, stride);
  if (split == Split::Eval && eval_ids_) {
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t at = index * seq + s;
      tokens[s * stride] = at < std::ssize(*eval_ids_) ? (*eval_ids_)[static_cast<size_t>(at)] : 0;
    }
    return Success{};
  }
  std::optional<SourceSample> sample;
  if (synthetic_ && exists(split, index)) {
    synthetic_->Make(split, split == Split::Train ? data_.sources.front().first_sample + index : index, ids_.data());
    sample = SourceSample{.pieces = {{.ids = {0, seq}}}};
  } else if (!synthetic_) {
    ASSIGN_OR_RETURN(sample, SampleAt(split, index));
    RETURN_IF_ERROR(sample ? ReadIds(*sample) : Status(Success{}));
  }
  for (int64_t s = 0; s < seq; ++s) {
    tokens[s * stride] = sample ? ids_[static_cast<size_t>(s)] : 0;
  }
  if (!sample) {
    return Success{};
  }
  if (head.valid() || (sample->source != nullptr && sample->source->targets() != nullptr)) {
    return ReadTargets(head.valid() ? *targets_[head] : *sample->source->targets(), *sample, targets, stride);
  }
  int64_t place = 0;
  for (const DocumentPiece& piece : sample->pieces) {
    const int64_t end = place + piece.ids.size();
    for (int64_t s = place; s < end - (data_.packs() ? 1 : 0); ++s) {
      targets[s * stride] = ids_[static_cast<size_t>(s) + 1];
    }
    place = end;
  }
  return Success{};
}

auto TokenReader::ReadTargets(IdStream& file, const SourceSample& sample, int32_t* targets, int64_t stride) -> Status {
  int64_t place = 0;
  for (const DocumentPiece& piece : sample.pieces) {
    const int64_t count = piece.ids.size() - (data_.packs() ? 1 : 0);
    RETURN_IF_ERROR(file.Read(piece.ids.begin + 1, count, ids_.data()));
    for (int64_t i = 0; i < count; ++i) {
      targets[(place + i) * stride] = ids_[static_cast<size_t>(i)];
    }
    place += piece.ids.size();
  }
  return Success{};
}

auto TokenReader::NameOfSource(Split split, int64_t index) -> ErrorOr<std::string> {
  if (synthetic_ || (split == Split::Eval && eval_ids_)) {
    return std::string();
  }
  ASSIGN_OR_RETURN(const auto sample, SampleAt(split, index));
  return sample && sample->number >= 0 ? data_.sources[static_cast<size_t>(sample->number)].name : std::string();
}

auto TokenReader::ReadTargets(Split split, int64_t index, HeadId head, int32_t* targets, int64_t stride) -> Status {
  WriteNone(targets, stride);
  ASSIGN_OR_RETURN(const auto sample, SampleAt(split, index));
  return sample ? ReadTargets(*targets_[head], *sample, targets, stride) : Status(Success{});
}

auto TokenReader::ReadDocuments(Split split, int64_t index, int32_t* starts, int32_t* positions, int64_t stride)
    -> Status {
  std::vector<DocumentPiece> pieces;
  if (synthetic_ || (split == Split::Eval && eval_ids_)) {
    pieces.resize(exists(split, index) ? 1 : 0, {.ids = {0, data_.seq}});
  } else {
    ASSIGN_OR_RETURN(auto sample, SampleAt(split, index));
    if (sample) {
      pieces = data_.packs() ? sample->pieces : sample->source->DocumentsIn(split, sample->pieces.front());
    }
  }
  int64_t place = 0;
  for (const DocumentPiece& piece : pieces) {
    for (int64_t i = 0; i < piece.ids.size(); ++i) {
      starts[(place + i) * stride] = static_cast<int32_t>(place);
      positions[(place + i) * stride] = static_cast<int32_t>(piece.position + i);
    }
    place += piece.ids.size();
  }
  for (; place < data_.seq; ++place) {
    starts[place * stride] = static_cast<int32_t>(place);
    positions[place * stride] = 0;
  }
  return Success{};
}

auto TokenReader::HoldsEvalTarget() -> ErrorOr<bool> {
  const bool from_heads = std::ranges::any_of(heads_, [](const TargetHead& head) { return head.is_own; });
  const bool from_sources =
      !eval_ && std::ranges::any_of(sources_, [](SourceStream& source) { return source.targets() != nullptr; });
  if (!from_heads && !from_sources && !data_.splits_documents()) {
    return num_eval_samples() > 0;
  }
  std::vector<HeadId> heads;
  for (const HeadId head : heads_.ids()) {
    heads.push_back(head);
  }
  if (!from_heads) {
    // Targets of the sources, or the next tokens.
    heads.emplace_back();
  }
  std::vector<int32_t> tokens(static_cast<size_t>(data_.seq));
  std::vector<int32_t> targets(tokens.size());
  std::vector<int32_t> starts(tokens.size());
  for (const HeadId head : heads) {
    for (int64_t i = 0; i < num_eval_samples(); ++i) {
      RETURN_IF_ERROR(ReadSample(Split::Eval, i, tokens.data(), targets.data(), 1, head));
      if (data_.splits_documents()) {
        // Positions take the place of the tokens, which nobody reads.
        RETURN_IF_ERROR(ReadDocuments(Split::Eval, i, starts.data(), tokens.data(), 1));
        TakeTargetsAtEnds(starts.data(), data_.seq, 1, targets.data());
      }
      if (std::ranges::any_of(targets, [](int32_t target) { return target >= 0; })) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace shardc
