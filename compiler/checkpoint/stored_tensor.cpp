#include "compiler/checkpoint/stored_tensor.h"

#include <algorithm>

#include "compiler/checkpoint/pieces.h"

namespace shardc {

auto CheckpointFiles::Open(const std::string& name) -> ErrorOr<const Opened*> {
  const auto found = std::ranges::find(open_, name, &std::pair<std::string, Opened>::first);
  if (found != open_.end()) {
    open_.splice(open_.begin(), open_, found);
    return &open_.front().second;
  }
  auto file = OpenFileAt(directory_, name);
  if (!file) {
    return Error{ExitCode::Checkpoint, file.error().message};
  }
  const auto bytes = FileBytes(*file);
  const auto expected = manifest_.files.find(name);
  FAIL_IF(!bytes || expected == manifest_.files.end() || *bytes != expected->second.bytes, ExitCode::Checkpoint,
          "{} has {} bytes; the manifest has {}", file->path(), bytes ? *bytes : -1,
          expected == manifest_.files.end() ? -1 : expected->second.bytes);
  ASSIGN_OR_RETURN(const auto header, ReadSafetensorsHeader(*file));
  Opened opened{.file = *std::move(file), .data_begin = header.data_begin, .tensors = {}};
  for (const SafetensorsTensor& tensor : header.tensors) {
    opened.tensors[tensor.name] = tensor.data;
  }
  open_.emplace_front(name, std::move(opened));
  if (open_.size() > MostOpen) {
    open_.pop_back();
  }
  return &open_.front().second;
}

StoredTensor::StoredTensor(CheckpointFiles* files, const Manifest& manifest, const std::string& name)
    : files_(*files),
      stored_name_(StoredName(name, StateRole::Parameter)),
      num_elements_(NumElements(manifest.tensors.at(name).shape)),
      dtype_(manifest.tensors.at(name).dtype) {
  const ManifestTensor& tensor = manifest.tensors.at(name);
  for (const Piece& piece : PiecesOf(manifest, tensor, StateRole::Parameter)) {
    parts_.push_back({tensor.IntervalOf(piece), piece.file});
  }
}

auto StoredTensor::Read(int64_t begin, int64_t end, std::byte* out) -> Status {
  const int64_t size = SizeOf(dtype_);
  for (const Part& part : parts_) {
    Status status = Success{};
    ForEachCommonInterval(
        BoxInterval::Of({begin, end}), part.interval, [&](int64_t at, int64_t in_part, int64_t count) {
          if (!status) {
            return;
          }
          const auto file = files_.Open(part.file);
          if (!file) {
            status = file.error();
            return;
          }
          const auto stored = (*file)->tensors.find(stored_name_);
          if (stored == (*file)->tensors.end() || stored->second.size() != part.interval.elements.size() * size) {
            status = Fail(ExitCode::Checkpoint, "{} does not hold elements {} to {} of {}", part.file,
                          part.interval.elements.begin, part.interval.elements.end, stored_name_);
            return;
          }
          status = ReadAll((*file)->file, out + at * size, count * size,
                           (*file)->data_begin + stored->second.begin + in_part * size);
        });
    RETURN_IF_ERROR(status);
  }
  return Success{};
}

}  // namespace shardc
