#include "compiler/checkpoint/stored_tensor.h"

#include <algorithm>

#include "compiler/checkpoint/element_sum.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/widen.h"

namespace shardc {

auto CheckpointFiles::Open(const std::string& name) -> ErrorOr<CheckpointFile*> {
  const auto found = std::ranges::find_if(open_, [&](const auto& opened) { return opened.first == name; });
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return open_.front().second.get();
  }
  ASSIGN_OR_RETURN(auto file, CheckpointFile::Open(directory_, manifest_, name, &kept_));
  open_.emplace_front(name, std::move(file));
  if (open_.size() > MostOpen) {
    open_.pop_back();
  }
  return open_.front().second.get();
}

auto CheckpointFiles::OpenItsBase() -> Status {
  if (manifest_.base && base_ == nullptr) {
    ASSIGN_OR_RETURN(auto base, OpenBaseOf(manifest_));
    base_ = std::make_unique<OpenBase>(std::move(base));
    base_files_ = std::make_unique<CheckpointFiles>(&base_->directory, &base_->manifest);
  }
  return Success{};
}

StoredTensor::StoredTensor(CheckpointFiles* files, const Manifest& manifest, const std::string& name, StateRole role)
    : files_(*files),
      stored_name_(StoredName(name, role)),
      num_elements_(NumElements(manifest.tensors.at(name).shape)),
      dtype_(role == StateRole::Parameter ? manifest.tensors.at(name).dtype : DType::F32) {
  const ManifestTensor& tensor = manifest.tensors.at(name);
  for (const Piece& piece : PiecesOf(manifest, tensor, role)) {
    parts_.push_back({tensor.IntervalOf(piece), piece.file});
  }
  if (tensor.in_base) {
    CHECK(files->base_ != nullptr, "{} is read, and its base is not open", name);
    in_base_ = tensor.in_base;
    shape_ = tensor.shape;
    there_ = std::make_unique<StoredTensor>(files->base_files_.get(), files->base_->manifest, in_base_->tensor);
  }
}

auto StoredTensor::ReadInBase(int64_t begin, int64_t end, std::byte* out) -> Status {
  const BoxInterval own = BoxInterval::Of({begin, end});
  const Interval there = InBase(*in_base_, shape_, own).elements;
  if (there_->dtype() == dtype_) {
    RETURN_IF_ERROR(there_->Read(there.begin, there.end, out));
  } else {
    std::vector<std::byte> narrow(static_cast<size_t>((end - begin) * SizeOf(there_->dtype())));
    RETURN_IF_ERROR(there_->Read(there.begin, there.end, narrow.data()));
    Widen(narrow.data(), there_->dtype(), end - begin, reinterpret_cast<float*>(out));
  }
  num_read_ += end - begin;
  sum_ += SumOfElements(own, dtype_, out);
  return num_read_ == num_elements_ && sum_ != in_base_->sum
             ? Status(BaseHasChanged(files_.base_->path, in_base_->tensor))
             : Status(Success{});
}

auto StoredTensor::ReadPart(const Part& part, int64_t begin, int64_t count, std::byte* out) -> Status {
  const int64_t size = SizeOf(dtype_);
  ASSIGN_OR_RETURN(auto file, files_.Open(part.file));
  ASSIGN_OR_RETURN(const auto data, file->Find(stored_name_, dtype_, part.interval.elements.size()));
  return file->Read(out, count * size, data.begin + begin * size);
}

auto StoredTensor::Read(int64_t begin, int64_t end, std::byte* out) -> Status {
  if (in_base_) {
    return ReadInBase(begin, end, out);
  }
  for (const Part& part : parts_) {
    Status status = Success{};
    ForEachCommonInterval(BoxInterval::Of({begin, end}), part.interval,
                          [&](int64_t at, int64_t in_part, int64_t count) {
                            if (status) {
                              status = ReadPart(part, in_part, count, out + at * SizeOf(dtype_));
                            }
                          });
    RETURN_IF_ERROR(status);
  }
  return Success{};
}

}  // namespace shardc
