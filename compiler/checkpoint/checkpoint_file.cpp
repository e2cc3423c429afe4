#include "compiler/checkpoint/checkpoint_file.h"

#include <cstring>

#include "compiler/base/text/joined.h"
#include "compiler/checkpoint/pieces.h"

namespace shardc {

namespace {

/// A file whose size is that of the manifest, and its digests, if it has some.
struct OpenedFile {
  Descriptor file;
  int64_t bytes = 0;
  std::vector<DigestBytes> digests;
};

auto OpenFile(const Descriptor& directory, const Manifest& manifest, const std::string& name) -> ErrorOr<OpenedFile> {
  const ManifestFile& expected = manifest.files.at(name);
  auto file = OpenFileAt(directory, name);
  const auto bytes = file ? FileBytes(*file) : file.error();
  FAIL_IF(!bytes, ExitCode::Checkpoint, "{}", bytes.error().message);
  FAIL_IF(*bytes != expected.bytes, ExitCode::Checkpoint, "{} has {} bytes, its manifest says {}", file->path(), *bytes,
          expected.bytes);
  OpenedFile opened{.file = *std::move(file), .bytes = *bytes, .digests = {}};
  if (manifest.digests_blocks()) {
    ASSIGN_OR_RETURN(opened.digests, ReadBlockDigests(directory, name, *bytes, expected.digest));
  }
  return opened;
}

/// Returns the name of one tensor in a file; "" if it has none.
auto FirstTensorIn(const Manifest& manifest, const std::string& file) -> std::string {
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const StateRole role : RolesOf(manifest, tensor)) {
      for (const Piece& piece : PiecesOf(manifest, tensor, role)) {
        if (piece.file == file) {
          return StoredName(name, role);
        }
      }
    }
  }
  return {};
}

}  // namespace

auto CheckCheckpointFile(const Descriptor& directory, const Manifest& manifest, const std::string& name) -> Status {
  ASSIGN_OR_RETURN(const auto opened, OpenFile(directory, manifest, name));
  if (manifest.digests_blocks()) {
    return Success{};
  }
  const auto actual = DigestOf(opened.file, opened.bytes);
  FAIL_IF(!actual, ExitCode::Checkpoint, "{}", actual.error().message);
  if (const std::string& expected = manifest.files.at(name).digest; *actual != expected) {
    const std::string tensor = FirstTensorIn(manifest, name);
    const std::string tensors = tensor.empty() ? "" : fmt::format(", which holds {} and others,", tensor);
    return Fail(ExitCode::Checkpoint, "{} ({} bytes){} is damaged: its digest is {}, the manifest says {}",
                opened.file.path(), opened.bytes, tensors, *actual, expected);
  }
  return Success{};
}

CheckpointFile::CheckpointFile(Descriptor file, int64_t bytes, std::vector<DigestBytes> digests, KeptBlocks* kept)
    : file_(std::move(file)),
      bytes_(bytes),
      digests_(std::move(digests)),
      kept_(*kept),
      number_(kept->NumberOfNextFile()) {}

auto CheckpointFile::Open(const Descriptor& directory, const Manifest& manifest, const std::string& name,
                          KeptBlocks* kept) -> ErrorOr<std::unique_ptr<CheckpointFile>> {
  ASSIGN_OR_RETURN(auto opened, OpenFile(directory, manifest, name));
  std::unique_ptr<CheckpointFile> file(
      new CheckpointFile(std::move(opened.file), opened.bytes, std::move(opened.digests), kept));
  RETURN_IF_ERROR(file->ReadHeader());
  return file;
}

auto CheckpointFile::ReadHeader() -> Status {
  // An error of reading names the file already.
  Status bytes_read = Success{};
  auto header = ReadSafetensorsHeader(
      bytes_, [&](void* to, int64_t bytes, int64_t offset) { return bytes_read = Read(to, bytes, offset); });
  RETURN_IF_ERROR(bytes_read);
  FAIL_IF(!header, header.error().code, "{}: {}", file_.path(), header.error().message);
  header_ = *std::move(header);
  for (const SafetensorsTensor& tensor : header_.tensors) {
    tensors_[tensor.name] = &tensor;
  }
  return Success{};
}

auto CheckpointFile::Find(const std::string& tensor, DType dtype, int64_t num_elements) const -> ErrorOr<Interval> {
  const auto found = tensors_.find(tensor);
  FAIL_IF(found == tensors_.end() || found->second->dtype != SafetensorsTypeOf(dtype) ||
              NumElements(found->second->shape) != num_elements,
          ExitCode::Checkpoint, "{}: no {} tensor {} of {} elements, as the manifest says", file_.path(),
          SafetensorsTypeOf(dtype), tensor, num_elements);
  const Interval& data = found->second->data;
  return Interval{header_.data_begin + data.begin, header_.data_begin + data.end};
}

auto CheckpointFile::Read(void* to, int64_t bytes, int64_t offset) -> Status {
  if (!has_digests()) {
    return ReadAll(file_, to, bytes, offset);
  }
  CHECK(offset >= 0 && bytes <= bytes_ - offset, "bytes {} to {} of {}", offset, offset + bytes, bytes_);
  auto* out = static_cast<std::byte*>(to);
  KeptBlocks::Kept& kept = kept_.Of(number_);
  for (const int64_t end = offset + bytes; offset < end;) {
    const int64_t block = offset / BlockBytes;
    const Interval whole = BlockAt(block, bytes_);
    const Interval wanted{offset, std::min(end, whole.end)};
    const bool is_kept = kept.file == number_ && kept.block == block;
    if (wanted == whole && !is_kept) {
      RETURN_IF_ERROR(ReadBlock(block, out));
    } else {
      if (!is_kept) {
        if (kept.buffer == nullptr) {
          kept.buffer = std::make_unique_for_overwrite<BlockBuffer>();
        }
        kept.file = -1;
        RETURN_IF_ERROR(ReadBlock(block, kept.buffer->bytes.data()));
        kept.file = number_;
        kept.block = block;
      }
      std::memcpy(out, kept.buffer->bytes.data() + (wanted.begin - whole.begin), static_cast<size_t>(wanted.size()));
    }
    out += wanted.size();
    offset = wanted.end;
  }
  return Success{};
}

auto CheckpointFile::ReadBlock(int64_t block, std::byte* to) -> Status {
  const Interval bytes = BlockAt(block, bytes_);
  RETURN_IF_ERROR(ReadAll(file_, to, bytes.size(), bytes.begin));
  return CheckBlock(block, to);
}

auto CheckpointFile::CheckBlock(int64_t block, const std::byte* bytes) const -> Status {
  const Interval in_file = BlockAt(block, bytes_);
  const DigestBytes actual = DigestBytesOf(bytes, in_file.size());
  const DigestBytes& expected = digests_[static_cast<size_t>(block)];
  FAIL_IF(actual != expected, ExitCode::Checkpoint,
          "{} is damaged: the digest of bytes [{}, {}), which hold {}, is {}, and {} says {}", file_.path(),
          in_file.begin, in_file.end, ContentsOf(in_file), ToText(actual), BlocksName(file_.path()), ToText(expected));
  return Success{};
}

auto CheckpointFile::ContentsOf(Interval bytes) const -> std::string {
  std::vector<std::string> contents;
  if (bytes.begin < header_.data_begin || header_.tensors.empty()) {
    contents.emplace_back("its header");
  }
  for (const SafetensorsTensor& tensor : header_.tensors) {
    const Interval in_file{header_.data_begin + tensor.data.begin, header_.data_begin + tensor.data.end};
    if (!Intersect(in_file, bytes).empty()) {
      contents.push_back(tensor.name);
    }
  }
  constexpr size_t MostNamed = 3;
  return Listed(contents, MostNamed);
}

}  // namespace shardc
