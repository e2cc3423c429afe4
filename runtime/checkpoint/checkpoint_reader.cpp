#include "runtime/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <array>

#include "compiler/base/bfloat16.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/safetensors.h"
#include "runtime/checkpoint/mapped_file.h"
#include "runtime/checkpoint/mapped_tensor.h"
#include "runtime/checkpoint/match_plan.h"
#include "runtime/checkpoint/read_manifest.h"
#include "runtime/control/agree.h"

namespace shardc {

static auto RemedyOf(ReadPurpose purpose) -> std::string_view {
  return purpose == ReadPurpose::Seed ? "begin from another checkpoint"
                                      : "move this checkpoint away to continue from the one before";
}

struct CheckpointReader::ShardFile {
  Descriptor file;
  /// Made when it is asked for.
  std::unique_ptr<MappedFile> mapped;
  SafetensorsHeader header;
  std::map<std::string_view, const SafetensorsTensor*> tensors;
};

CheckpointReader::CheckpointReader(CheckpointReaderOptions options) : options_(std::move(options)) {
  CHECK(options_.plan != nullptr && options_.fs != nullptr);
}

CheckpointReader::~CheckpointReader() = default;

auto CheckpointReader::Open(CheckpointReaderOptions options) -> ErrorOr<std::unique_ptr<CheckpointReader>> {
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader(std::move(options)));
  RankControl* control = reader->options_.control;
  Status loaded = reader->Load();
  if (loaded) {
    loaded = MatchPlan(reader->manifest_, reader->manifest_text_, reader->options_);
  }
  if (loaded) {
    loaded = control == nullptr ? reader->CheckFiles(0, 1)
                                : reader->CheckFiles(control->rank(), control->mesh().num_ranks());
  }
  if (control != nullptr) {
    loaded = AgreeOnStatus(*control, loaded);
  }
  if (!loaded) {
    const Error error = loaded.error();
    return Fail(error.code, "checkpoint {}: {}", reader->options_.path, error.message);
  }
  return reader;
}

auto CheckpointReader::Load() -> Status {
  auto directory = OpenDirectory(*options_.fs, options_.path);
  if (!directory) {
    return Fail(ExitCode::Checkpoint, "{}", directory.error().message);
  }
  directory_ = std::move(*directory);
  auto text = ReadManifestText(directory_);
  if (!text) {
    return text.error();
  }
  auto manifest = ManifestOf(directory_, *text);
  if (!manifest) {
    return manifest.error();
  }
  manifest_ = std::move(*manifest);
  manifest_text_ = *std::move(text);
  return CheckCover(manifest_);
}

auto CheckpointReader::CheckFiles(int64_t part, int64_t num_parts) -> Status {
  int64_t index = 0;
  for (const auto& [name, expected] : manifest_.files) {
    if (index++ % num_parts == part) {
      RETURN_IF_ERROR(CheckFile(name, expected));
    }
  }
  return Success{};
}

/// The name of one tensor in a file; "" if it has none.
static auto FirstTensorIn(const Manifest& manifest, const std::string& file) -> std::string {
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

auto CheckpointReader::CheckFile(const std::string& name, const ManifestFile& expected) -> Status {
  auto file = OpenFileAt(directory_, name);
  auto bytes = file ? FileBytes(*file) : file.error();
  if (!bytes) {
    return Fail(ExitCode::Checkpoint, "{}; {}", bytes.error().message, RemedyOf(options_.purpose));
  }
  if (*bytes != expected.bytes) {
    return Fail(ExitCode::Checkpoint, "{} has {} bytes, its manifest says {}; {}", file->path(), *bytes, expected.bytes,
                RemedyOf(options_.purpose));
  }
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(ChunkBytes, *bytes)));
  Digest digest;
  for (int64_t offset = 0; offset < *bytes; offset += ChunkBytes) {
    const int64_t size = std::min(ChunkBytes, *bytes - offset);
    if (const Status read = ReadAll(*file, chunk.data(), size, offset); !read) {
      return Fail(ExitCode::Checkpoint, "{}", read.error().message);
    }
    digest.Update(chunk.data(), size);
  }
  if (const std::string actual = digest.Text(); actual != expected.digest) {
    const std::string tensor = FirstTensorIn(manifest_, name);
    const std::string tensors = tensor.empty() ? "" : fmt::format(", which holds {} and others,", tensor);
    return Fail(ExitCode::Checkpoint, "{} ({} bytes){} is damaged: its digest is {}, the manifest says {}; {}",
                file->path(), *bytes, tensors, actual, expected.digest, RemedyOf(options_.purpose));
  }
  return Success{};
}

auto CheckpointReader::FileNamed(const std::string& name) -> ErrorOr<ShardFile*> {
  if (const auto found = files_.find(name); found != files_.end()) {
    return found->second.get();
  }
  auto file = OpenFileAt(directory_, name);
  if (!file) {
    return Fail(ExitCode::Checkpoint, "{}", file.error().message);
  }
  auto shard = std::make_unique<ShardFile>();
  auto header = ReadSafetensorsHeader(*file);
  if (!header) {
    return header.error();
  }
  shard->file = std::move(*file);
  shard->header = std::move(*header);
  for (const SafetensorsTensor& tensor : shard->header.tensors) {
    shard->tensors[tensor.name] = &tensor;
  }
  return (files_[name] = std::move(shard)).get();
}

auto CheckpointReader::ReadScalar(std::string_view name) const -> ErrorOr<double> {
  const auto found = manifest_.state.find(std::string(name));
  if (found == manifest_.state.end()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {} has no scalar {}", options_.path, name);
  }
  return found->second;
}

/// Moments are kept in f32 whatever the parameter is.
static auto StoredTypeOf(const ManifestTensor& tensor, StateRole role) -> DType {
  return role == StateRole::Parameter ? tensor.dtype : DType::F32;
}

auto CheckpointReader::ReadElements(std::string_view name, StateRole role, const BoxInterval& wanted, DType dtype,
                                    void* out) -> Status {
  const auto tensor = manifest_.tensors.find(std::string(name));
  if (tensor == manifest_.tensors.end()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {} has no tensor {}", options_.path, name);
  }
  const std::string stored = StoredName(name, role);
  // The pieces are disjoint (CheckCover), so the count proves the cover.
  int64_t covered = 0;
  for (const Piece& piece : PiecesOf(manifest_, tensor->second, role)) {
    Status status = Success{};
    ForEachCommonInterval(wanted, tensor->second.IntervalOf(piece), [&](int64_t at, int64_t in_piece, int64_t count) {
      if (status.ok()) {
        status = ReadInterval(stored, piece, StoredTypeOf(tensor->second, role), in_piece, count, dtype,
                              static_cast<std::byte*>(out) + at * SizeOf(dtype));
        covered += count;
      }
    });
    RETURN_IF_ERROR(status);
  }
  if (covered != wanted.elements.size()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {}: {} has {} of the {} elements [{}, {})", options_.path, stored,
                covered, wanted.elements.size(), wanted.elements.begin, wanted.elements.end);
  }
  return Success{};
}

auto CheckpointReader::SourceOf(const std::string& stored, const Piece& piece, DType dtype) -> ErrorOr<Source> {
  auto shard = FileNamed(piece.file);
  if (!shard) {
    return shard.error();
  }
  const auto entry = (*shard)->tensors.find(stored);
  if (entry == (*shard)->tensors.end() || entry->second->dtype != SafetensorsTypeOf(dtype) ||
      entry->second->shape != Dims{piece.elements.size()}) {
    return Fail(ExitCode::Checkpoint, "{}: no {} tensor {} of {} elements, as the manifest says", (*shard)->file.path(),
                SafetensorsTypeOf(dtype), stored, piece.elements.size());
  }
  return Source{*shard, (*shard)->header.data_begin + entry->second->data.begin};
}

/// Of f32 and bf16, one to the other.
static auto Convert(const std::byte* from, DType dtype, int64_t count, void* out) -> void {
  if (dtype == DType::F32) {
    const auto* const floats = reinterpret_cast<const float*>(from);
    for (int64_t i = 0; i < count; ++i) {
      Store(static_cast<BFloat16*>(out)[i], floats[i]);
    }
    return;
  }
  const auto* const halves = reinterpret_cast<const BFloat16*>(from);
  for (int64_t i = 0; i < count; ++i) {
    static_cast<float*>(out)[i] = Load(halves[i]);
  }
}

auto CheckpointReader::ReadInterval(const std::string& stored, const Piece& piece, DType saved, int64_t begin,
                                    int64_t count, DType dtype, void* out) -> Status {
  const auto source = SourceOf(stored, piece, saved);
  if (!source) {
    return source.error();
  }
  const int64_t offset = source->offset + begin * SizeOf(saved);
  if (saved == dtype) {
    return ReadAll(source->file->file, out, count * SizeOf(saved), offset);
  }
  CHECK((saved == DType::F32 || saved == DType::BF16) && (dtype == DType::F32 || dtype == DType::BF16),
        "{} is {}, and is read as {}", stored, ToText(saved), ToText(dtype));
  constexpr int64_t BlockSize = 4096;
  alignas(float) std::array<std::byte, static_cast<size_t>(BlockSize) * sizeof(float)> block;
  for (int64_t at = 0; at < count; at += BlockSize) {
    const int64_t size = std::min(BlockSize, count - at);
    RETURN_IF_ERROR(ReadAll(source->file->file, block.data(), size * SizeOf(saved), offset + at * SizeOf(saved)));
    Convert(block.data(), saved, size, static_cast<std::byte*>(out) + at * SizeOf(dtype));
  }
  return Success{};
}

auto CheckpointReader::Map(std::string_view name) -> ErrorOr<const LoadedTensor*> {
  if (const auto known = mapped_.find(name); known != mapped_.end()) {
    return known->second.get();
  }
  const auto tensor = manifest_.tensors.find(std::string(name));
  if (tensor == manifest_.tensors.end()) {
    return Fail(ExitCode::Checkpoint, "checkpoint {} has no tensor {}", options_.path, name);
  }
  std::vector<MappedTensor::MappedPiece> pieces;
  for (const Piece& piece : PiecesOf(manifest_, tensor->second, StateRole::Parameter)) {
    const auto source = SourceOf(StoredName(name, piece.role), piece, tensor->second.dtype);
    if (!source) {
      return source.error();
    }
    if (source->file->mapped == nullptr) {
      auto mapped = MappedFile::Map(source->file->file, manifest_.files.at(piece.file).bytes);
      if (!mapped) {
        return mapped.error();
      }
      source->file->mapped = *std::move(mapped);
    }
    pieces.push_back({tensor->second.IntervalOf(piece), source->file->mapped->data() + source->offset});
  }
  auto mapped =
      std::make_unique<MappedTensor>(NumElements(tensor->second.shape), tensor->second.dtype, std::move(pieces));
  return (mapped_[std::string(name)] = std::move(mapped)).get();
}

auto CheckpointReader::CheckMapped() const -> Status {
  for (const auto& [name, shard] : files_) {
    if (shard->mapped != nullptr) {
      if (const Status whole = shard->mapped->Check(); !whole) {
        return Fail(whole.error().code, "checkpoint {}: {}; {}", options_.path, whole.error().message,
                    RemedyOf(options_.purpose));
      }
    }
  }
  return Success{};
}

}  // namespace shardc
