#include "runtime/data/source_stream.h"

#include "compiler/base/check.h"
#include "compiler/data/packed_files.h"
#include "compiler/data/shuffle.h"

namespace shardc {

auto SourceStream::FindDocuments(const DataSource& data, const FileList& list, int64_t document_end) -> Status {
  if (data.splits_documents()) {
    ASSIGN_OR_RETURN(auto documents, DocumentTable::Find(list, data.format, document_end));
    documents_ = std::make_shared<const DocumentTable>(std::move(documents));
  }
  return Success{};
}

auto SourceStream::Open(const DataSource& data, const TokenSource& source) -> ErrorOr<SourceStream> {
  CHECK(!source.files.empty(), "source {} names no files", source.name);
  SourceStream stream;
  const FileList list = TokenList(data, source);
  ASSIGN_OR_RETURN(stream.tokens_, IdStream::Open(list, data.format));
  if (!source.targets.empty()) {
    const FileList targets = TargetList(data, source);
    ASSIGN_OR_RETURN(stream.targets_, IdStream::Open(targets, data.format));
    RETURN_IF_ERROR(CompareTargets(targets.OwnerText(), stream.targets_->num_ids(), stream.num_tokens()));
  }
  RETURN_IF_ERROR(stream.FindDocuments(data, list, source.document_end));
  stream.order_ = data.order;
  stream.seed_ = SeedOf(data, source);
  stream.seq_ = data.seq;
  stream.eval_tokens_ = data.eval_tokens;
  ASSIGN_OR_RETURN(const auto splits, CutIntoSamples(data, source, stream.num_tokens(), source.files.size()));
  stream.num_train_samples_ = splits.train_samples;
  stream.num_eval_samples_ = splits.eval_samples;
  if (data.packs()) {
    ASSIGN_OR_RETURN(auto train,
                     PackedSplit::Create(stream.documents_, stream.ids_of_train(), TrainRule(data, source)));
    stream.packed_train_ = std::make_unique<PackedSplit>(std::move(train));
    RETURN_IF_ERROR(stream.PackEval(data, source.too_long));
  }
  stream.TakeFingerprint(source.too_long);
  return stream;
}

auto SourceStream::OpenEval(const DataSource& data) -> ErrorOr<SourceStream> {
  SourceStream stream;
  const FileList list = EvalList(data);
  ASSIGN_OR_RETURN(stream.tokens_, IdStream::Open(list, data.format));
  RETURN_IF_ERROR(CheckEvalTokens(data, stream.num_tokens()));
  RETURN_IF_ERROR(stream.FindDocuments(data, list, data.document_end));
  stream.order_ = SampleOrder::Sequential;
  stream.seq_ = data.seq;
  stream.eval_tokens_ = stream.num_tokens();
  stream.num_eval_samples_ = CountSamples(data.seq, stream.eval_tokens_, stream.num_tokens()).eval_samples;
  if (data.packs()) {
    RETURN_IF_ERROR(stream.PackEval(data, data.too_long));
    RETURN_IF_ERROR(CheckEvalSamples(data, stream.num_eval_samples_));
  }
  stream.TakeFingerprint(data.too_long);
  return stream;
}

auto SourceStream::PackEval(const DataSource& data, TooLong too_long) -> Status {
  if (eval_tokens_ > 0) {
    ASSIGN_OR_RETURN(auto eval, PackedSplit::Create(documents_, ids_of_eval(), EvalRule(data, too_long)));
    packed_eval_ = std::make_unique<PackedSplit>(std::move(eval));
    num_eval_samples_ = packed_eval_->RowsOfEpoch(0);
  }
  return Success{};
}

auto SourceStream::TakeFingerprint(TooLong too_long) -> void {
  fingerprint_ = tokens_->Fingerprint();
  if (targets_) {
    fingerprint_ += "; its targets: " + targets_->Fingerprint();
  }
  if (documents_) {
    fingerprint_ += fmt::format("; {} documents, xxh3-128 {}", documents_->num_documents(), documents_->Digest());
  }
  if (packed_train_ || packed_eval_) {
    fingerprint_ += fmt::format("; longer than a sample: {}", ToText(too_long));
  }
}

auto SourceStream::num_train_samples() const -> int64_t {
  return packed_train_ ? packed_train_->RowsOfEpoch(0) : num_train_samples_;
}

auto SourceStream::TrainSample(int64_t index) const -> std::vector<DocumentPiece> {
  CHECK(index >= 0, "sample {}", index);
  if (packed_train_) {
    return packed_train_->Row(index);
  }
  int64_t sample = index % num_train_samples_;
  switch (order_) {
    case SampleOrder::Shuffled:
      sample = ShuffledIndex(sample, num_train_samples_, seed_, index / num_train_samples_);
      break;
    case SampleOrder::Sequential: break;
  }
  return {{.ids = {sample * seq_, (sample + 1) * seq_}}};
}

auto SourceStream::EvalSample(int64_t index) const -> std::vector<DocumentPiece> {
  CHECK(0 <= index && index < num_eval_samples_, "sample {} of {}", index, num_eval_samples_);
  if (packed_eval_) {
    return packed_eval_->Row(index);
  }
  const int64_t begin = ids_of_eval().begin + index * seq_;
  return {{.ids = {begin, begin + seq_}}};
}

auto SourceStream::DocumentsIn(Split split, const DocumentPiece& sample) const -> std::vector<DocumentPiece> {
  CHECK(documents_ != nullptr, "documents were not asked for");
  const Interval ids = split == Split::Train ? ids_of_train() : ids_of_eval();
  std::vector<DocumentPiece> pieces;
  for (int64_t d = documents_->DocumentOf(sample.ids.begin); pieces.empty() || pieces.back().ids.end < sample.ids.end;
       ++d) {
    const Interval document = Intersect(documents_->IdsOf(d), ids);
    const Interval piece = Intersect(document, sample.ids);
    pieces.push_back({.ids = piece, .position = piece.begin - document.begin});
  }
  return pieces;
}

}  // namespace shardc
