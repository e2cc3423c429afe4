#include "runtime/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "compiler/base/bfloat16.h"
#include "compiler/checkpoint/checkpoint_base.h"
#include "compiler/checkpoint/cover.h"
#include "compiler/checkpoint/peft_adapter.h"
#include "compiler/checkpoint/pieces.h"
#include "compiler/checkpoint/seed_contents.h"
#include "compiler/checkpoint/widen.h"
#include "runtime/checkpoint/mapped_file.h"
#include "runtime/checkpoint/mapped_tensor.h"
#include "runtime/checkpoint/match_plan.h"
#include "runtime/checkpoint/read_manifest.h"
#include "runtime/control/agree.h"

namespace shardc {

static auto RemedyOf(const CheckpointReaderOptions& options) -> std::string_view {
  return options.is_base                        ? "it is in the base of the run: put its files back as they were"
         : options.purpose == ReadPurpose::Seed ? "begin from another checkpoint"
                                                : "move this checkpoint away to continue from the one before";
}

/// Adds the way on to an error of a file.
static auto WithRemedy(const Error& error, const CheckpointReaderOptions& options) -> Error {
  return Fail(error.code, "{}; {}", error.message, RemedyOf(options));
}

struct CheckpointReader::ShardFile {
  std::unique_ptr<CheckpointFile> file;
  /// Made when it is asked for.
  std::unique_ptr<MappedFile> mapped;
  /// Null if the file has digests of its own.
  ReadBytesOf* read = nullptr;
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
    loaded = MatchPlan(reader->manifest_, reader->digest_, reader->options_);
  }
  if (loaded) {
    loaded = reader->LoadBase();
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
  FAIL_IF(!directory, ExitCode::Checkpoint, "{}", directory.error().message);
  directory_ = std::move(*directory);
  if (options_.purpose == ReadPurpose::Seed) {
    ASSIGN_OR_RETURN(auto contents, ReadSeedContents(directory_));
    manifest_ = std::move(contents.manifest);
    manifest_text_ = std::move(contents.text);
    digest_ = std::move(contents.digest);
    return options_.plan->seed.adapter.empty() ? Status(Success{}) : LoadAdapter();
  }
  ASSIGN_OR_RETURN(auto text, ReadManifestText(directory_));
  ASSIGN_OR_RETURN(manifest_, ManifestOf(directory_, text));
  manifest_text_ = std::move(text);
  return CheckCover(manifest_);
}

auto CheckpointReader::LoadBase() -> Status {
  if (!manifest_.base) {
    return Success{};
  }
  const Seed& seed = options_.plan->seed;
  ASSIGN_OR_RETURN(auto opened,
                   OpenBaseOf(manifest_, seed.manifest == manifest_.base->digest ? seed.path : "", *options_.fs));
  CheckpointReaderOptions options = options_;
  options.path = opened.path;
  options.purpose = ReadPurpose::Seed;
  options.is_base = true;
  base_.reset(new CheckpointReader(std::move(options)));
  base_->directory_ = std::move(opened.directory);
  base_->manifest_ = std::move(opened.manifest);
  return Success{};
}

auto CheckpointReader::LoadAdapter() -> Status {
  const std::string& path = options_.plan->seed.adapter_path;
  const std::string& planned = options_.plan->seed.adapter;
  auto directory = OpenDirectory(*options_.fs, path);
  auto contents = directory ? ReadPeftAdapter(*directory) : directory.error();
  FAIL_IF(!contents, ExitCode::Checkpoint, "its adapter {}: {}", path, contents.error().message);
  FAIL_IF(contents->digest != planned, ExitCode::Checkpoint,
          "its adapter {} is not the one that the plan was made for: the digest of its {} and header is {}, the plan "
          "says {}; make the plan again",
          path, PeftConfigName, contents->digest, planned);
  adapter_ =
      Adapter{.directory = *std::move(directory), .manifest = std::move(contents->manifest), .names = {}, .read = {}};
  for (const auto& [name, tensor] : adapter_->manifest.tensors) {
    const std::string parameter = ParameterOfPeft(name);
    adapter_->names[parameter] = name;
    manifest_.tensors[parameter] = tensor;
  }
  return Success{};
}

auto CheckpointReader::CheckFiles(int64_t part, int64_t num_parts) -> Status {
  if (base_ != nullptr) {
    RETURN_IF_ERROR(base_->CheckFiles(part, num_parts));
  }
  if (manifest_.published) {
    return CheckCopies(part, num_parts);
  }
  int64_t index = 0;
  for (const auto& [name, file] : manifest_.files) {
    if (index++ % num_parts != part) {
      continue;
    }
    if (const Status checked = CheckCheckpointFile(directory_, manifest_, name); !checked) {
      return WithRemedy(checked.error(), options_);
    }
  }
  return Success{};
}

auto CheckpointReader::CheckCopies(int64_t part, int64_t num_parts) -> Status {
  constexpr int64_t ChunkBytes = int64_t{1} << 20;
  for (const auto& [name, other] : manifest_.published->copies) {
    const ManifestTensor& tensor = manifest_.tensors.at(name);
    const int64_t bytes = SizeOf(tensor.dtype);
    const int64_t num_elements = NumElements(tensor.shape);
    std::array<std::vector<std::byte>, 2> chunks{std::vector<std::byte>(ChunkBytes),
                                                 std::vector<std::byte>(ChunkBytes)};
    const int64_t end = num_elements * (part + 1) / num_parts;
    for (int64_t at = num_elements * part / num_parts; at < end; at += ChunkBytes / bytes) {
      const int64_t count = std::min(ChunkBytes / bytes, end - at);
      for (size_t i = 0; i < chunks.size(); ++i) {
        const std::string& stored = i == 0 ? name : other;
        ASSIGN_OR_RETURN(const auto source,
                         SourceOf(stored, manifest_.tensors.at(stored).pieces.front(), tensor.dtype));
        RETURN_IF_ERROR(source.file->file->Read(chunks[i].data(), count * bytes, source.offset + at * bytes));
      }
      const auto [first, second] =
          std::mismatch(chunks[0].begin(), chunks[0].begin() + count * bytes, chunks[1].begin());
      if (first != chunks[0].begin() + count * bytes) {
        const int64_t element = at + (first - chunks[0].begin()) / bytes;
        std::array<float, 2> values{};
        for (size_t i = 0; i < chunks.size(); ++i) {
          Widen(chunks[i].data() + (element - at) * bytes, tensor.dtype, 1, &values[i]);
        }
        return Fail(
            ExitCode::Checkpoint,
            "config.json says `tie_word_embeddings` true, and element {} of {} is {}, that of {} {}; set the key "
            "to false and `model.tied` too, or begin from files whose tensors are equal",
            element, name, values[0], other, values[1]);
      }
    }
  }
  return Success{};
}

auto CheckpointReader::FileNamed(const std::string& name) -> ErrorOr<ShardFile*> {
  if (const auto found = files_.find(name); found != files_.end()) {
    return found->second.get();
  }
  const bool is_of_adapter = adapter_ && adapter_->manifest.files.contains(name);
  auto file = is_of_adapter ? CheckpointFile::Open(adapter_->directory, adapter_->manifest, name, &kept_)
                            : CheckpointFile::Open(directory_, manifest_, name, &kept_);
  if (!file) {
    return WithRemedy(file.error(), options_);
  }
  ReadBytesOf* const read = is_of_adapter ? &adapter_->read : manifest_.published ? &read_ : nullptr;
  return (files_[name] = std::make_unique<ShardFile>(*std::move(file), nullptr, read)).get();
}

auto CheckpointReader::ReadScalar(std::string_view name) const -> ErrorOr<double> {
  const auto found = manifest_.state.find(std::string(name));
  FAIL_IF(found == manifest_.state.end(), ExitCode::Checkpoint, "checkpoint {} has no scalar {}", options_.path, name);
  return found->second;
}

/// Moments are kept in f32 whatever the parameter is.
static auto StoredTypeOf(const ManifestTensor& tensor, StateRole role) -> DType {
  return role == StateRole::Parameter ? tensor.dtype : DType::F32;
}

auto CheckpointReader::ReadElements(std::string_view name, StateRole role, const BoxInterval& wanted, DType dtype,
                                    void* out) -> Status {
  const auto tensor = manifest_.tensors.find(std::string(name));
  FAIL_IF(tensor == manifest_.tensors.end(), ExitCode::Checkpoint, "checkpoint {} has no tensor {}", options_.path,
          name);
  if (const auto& in_base = tensor->second.in_base; in_base && role == StateRole::Parameter) {
    return base_->ReadElements(in_base->tensor, role, InBase(*in_base, tensor->second.shape, wanted), dtype, out);
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
  FAIL_IF(covered != wanted.elements.size(), ExitCode::Checkpoint,
          "checkpoint {}: {} has {} of the {} elements [{}, {})", options_.path, stored, covered,
          wanted.elements.size(), wanted.elements.begin, wanted.elements.end);
  return Success{};
}

auto CheckpointReader::SourceOf(const std::string& stored, const Piece& piece, DType dtype) -> ErrorOr<Source> {
  ASSIGN_OR_RETURN(auto shard, FileNamed(piece.file));
  const auto of_adapter = adapter_ ? adapter_->names.find(stored) : decltype(adapter_->names.end())();
  const bool is_of_adapter = adapter_ && of_adapter != adapter_->names.end();
  ASSIGN_OR_RETURN(const auto bytes,
                   shard->file->Find(is_of_adapter ? of_adapter->second : stored, dtype, piece.elements.size()));
  return Source{shard, bytes.begin};
}

auto CheckpointReader::ReadBytes(const std::string& stored, const Source& source, int64_t begin, int64_t bytes,
                                 std::byte* to) -> Status {
  if (source.file->read == nullptr) {
    const Status done = source.file->file->Read(to, bytes, source.offset + begin);
    return done ? done : WithRemedy(done.error(), options_);
  }
  // So much that its digest finds it in the cache.
  constexpr int64_t ChunkBytes = int64_t{256} << 10;
  for (int64_t at = 0; at < bytes; at += ChunkBytes) {
    const int64_t chunk = std::min(ChunkBytes, bytes - at);
    RETURN_IF_ERROR(source.file->file->Read(to + at, chunk, source.offset + begin + at));
    source.file->read->digests[stored].Update(to + at, chunk);
    source.file->read->bytes += chunk;
  }
  return Success{};
}

auto CheckpointReader::ReadInterval(const std::string& stored, const Piece& piece, DType saved, int64_t begin,
                                    int64_t count, DType dtype, void* out) -> Status {
  ASSIGN_OR_RETURN(const auto source, SourceOf(stored, piece, saved));
  const auto read = [&](int64_t first, int64_t size, void* to) -> Status {
    return ReadBytes(stored, source, first * SizeOf(saved), size * SizeOf(saved), static_cast<std::byte*>(to));
  };
  if (saved == dtype) {
    return read(begin, count, out);
  }
  CHECK(IsTypeOfSeed(saved) && (dtype == DType::F32 || dtype == DType::BF16), "{} is {}, and is read as {}", stored,
        ToText(saved), ToText(dtype));
  constexpr int64_t BlockSize = 16384;
  alignas(float) std::array<std::byte, static_cast<size_t>(BlockSize) * sizeof(float)> block;
  std::array<float, BlockSize> widened;
  for (int64_t at = 0; at < count; at += BlockSize) {
    const int64_t size = std::min(BlockSize, count - at);
    RETURN_IF_ERROR(read(begin + at, size, block.data()));
    if (dtype == DType::F32) {
      Widen(block.data(), saved, size, static_cast<float*>(out) + at);
      continue;
    }
    Widen(block.data(), saved, size, widened.data());
    for (int64_t i = 0; i < size; ++i) {
      Store(static_cast<BFloat16*>(out)[at + i], widened[static_cast<size_t>(i)]);
    }
  }
  return Success{};
}

auto CheckpointReader::Record() -> ErrorOr<Records> {
  Records records{.seed = manifest_text_, .adapter = {}};
  if (manifest_.published) {
    ASSIGN_OR_RETURN(auto own, ManifestFromText(manifest_text_));
    ASSIGN_OR_RETURN(records.seed, RecordOf(std::move(own), read_, options_.path));
  }
  if (adapter_) {
    ASSIGN_OR_RETURN(records.adapter, RecordOf(adapter_->manifest, adapter_->read, options_.plan->seed.adapter_path));
  }
  return records;
}

auto CheckpointReader::RecordOf(Manifest manifest, const ReadBytesOf& read, const std::string& path) const
    -> ErrorOr<std::string> {
  struct Read {
    int64_t bytes = 0;
    uint64_t low = 0;
    uint64_t high = 0;
  };
  Digest mine;
  for (const auto& [name, digest] : read.digests) {
    const std::string line = fmt::format("{} {}\n", name, digest.Text());
    mine.Update(line.data(), std::ssize(line));
  }
  const auto [low, high] = mine.Halves();
  std::vector<Read> all{{read.bytes, low, high}};
  if (options_.control != nullptr) {
    ASSIGN_OR_RETURN(all, options_.control->GatherValues(AxisSet::All(), all.front()));
  }
  Digest digest;
  for (const Read& of_rank : all) {
    const std::string line = DigestText(of_rank.low, of_rank.high) + "\n";
    digest.Update(line.data(), std::ssize(line));
    manifest.published->bytes_read += of_rank.bytes;
  }
  manifest.published->digest_read = digest.Text();
  manifest.published->directory = std::filesystem::path(path).filename().string();
  return ToText(manifest);
}

auto CheckpointReader::Map(std::string_view name) -> ErrorOr<const LoadedTensor*> {
  if (const auto known = mapped_.find(name); known != mapped_.end()) {
    return known->second.get();
  }
  const auto tensor = manifest_.tensors.find(std::string(name));
  FAIL_IF(tensor == manifest_.tensors.end(), ExitCode::Checkpoint, "checkpoint {} has no tensor {}", options_.path,
          name);
  if (const auto& in_base = tensor->second.in_base) {
    const ManifestTensor& there = base_->manifest_.tensors.at(in_base->tensor);
    FAIL_IF(there.shape != tensor->second.shape, ExitCode::Checkpoint,
            "checkpoint {}: {} is some rows of {} in its base, which no rule reads; load it, or write a model by "
            "`shardc export --merge` and begin from that",
            options_.path, name, in_base->tensor);
    return base_->Map(in_base->tensor);
  }
  std::vector<MappedTensor::MappedPiece> pieces;
  for (const Piece& piece : PiecesOf(manifest_, tensor->second, StateRole::Parameter)) {
    ASSIGN_OR_RETURN(const auto source, SourceOf(StoredName(name, piece.role), piece, tensor->second.dtype));
    if (source.file->mapped == nullptr) {
      ASSIGN_OR_RETURN(source.file->mapped, MappedFile::Map(source.file->file.get()));
    }
    MappedFile* const file = source.file->mapped.get();
    pieces.push_back({tensor->second.IntervalOf(piece), file->data() + source.offset, file});
  }
  auto mapped =
      std::make_unique<MappedTensor>(NumElements(tensor->second.shape), tensor->second.dtype, std::move(pieces));
  return (mapped_[std::string(name)] = std::move(mapped)).get();
}

auto CheckpointReader::CheckMapped() const -> Status {
  if (base_ != nullptr) {
    RETURN_IF_ERROR(base_->CheckMapped());
  }
  for (const auto& [name, shard] : files_) {
    if (shard->mapped != nullptr) {
      if (const Status whole = shard->mapped->Check(); !whole) {
        return Fail(whole.error().code, "checkpoint {}: {}; {}", options_.path, whole.error().message,
                    RemedyOf(options_));
      }
    }
  }
  return Success{};
}

auto CheckpointReader::CloseFiles() -> void {
  mapped_.clear();
  files_.clear();
  kept_ = {};
  if (base_ != nullptr) {
    base_->CloseFiles();
  }
}

}  // namespace shardc
