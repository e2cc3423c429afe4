#include "runtime/data/id_stream.h"

#include <algorithm>

#include "compiler/base/units.h"
#include "compiler/checkpoint/digest.h"
#include "compiler/data/megatron_index.h"

namespace shardc {

auto IdStream::Open(const FileList& list, TokenFormat format) -> ErrorOr<std::unique_ptr<IdStream>> {
  std::unique_ptr<IdStream> stream(new IdStream(format, list.purpose.noun, list.range));
  for (const std::string& path : list.paths) {
    RETURN_IF_ERROR(stream->AddFile(path, list.purpose));
  }
  RETURN_IF_ERROR(stream->TakeFingerprint());
  return stream;
}

auto IdStream::AddFile(const std::string& path, const FilePurpose& purpose) -> Status {
  ASSIGN_OR_RETURN(auto file, OpenTokenFile(path, format_, purpose));
  RETURN_IF_ERROR(CheckNoneFits(file, noun_, range_));
  if (format_ == TokenFormat::Megatron) {
    const auto index = MegatronIndex::Open(path, file.file_bytes, purpose);
    const Status follows = index ? index->CheckEntries() : Status(index.error());
    RETURN_IF_ERROR(follows);
  }
  const int64_t num_ids = file.num_ids;
  files_.push_back({.file = std::move(file), .begin = num_ids_});
  num_ids_ += num_ids;
  return Success{};
}

auto IdStream::TakeFingerprint() -> Status {
  constexpr int64_t EndBytes = 64 << 10;
  constexpr int64_t BlockBytes = 4 << 10;
  constexpr int64_t NumBlocks = 16;
  Digest digest;
  std::vector<uint8_t> block(EndBytes);
  for (const auto& [file, begin] : files_) {
    if (format_ == TokenFormat::Megatron) {
      // The other formats say it by their name, which a restart compares by itself.
      digest.Update(&file.type.bytes, sizeof(file.type.bytes));
    }
    digest.Update(&file.file_bytes, sizeof(file.file_bytes));
    std::vector<Interval> ranges{{0, EndBytes}, {std::max<int64_t>(0, file.file_bytes - EndBytes), file.file_bytes}};
    for (int64_t i = 0; i < NumBlocks; ++i) {
      const int64_t first = file.file_bytes / NumBlocks * i;
      ranges.push_back({first, first + BlockBytes});
    }
    for (Interval range : ranges) {
      range = Intersect(range, {0, file.file_bytes});
      if (const Status read = ReadAll(file.descriptor, block.data(), range.size(), range.begin); !read) {
        return Fail(ExitCode::RecipeRejected, "{} file: {}", noun_, read.error().message);
      }
      digest.Update(block.data(), range.size());
    }
  }
  fingerprint_ = fmt::format("{} file{}, {} tokens, xxh3-128 {}", files_.size(), files_.size() == 1 ? "" : "s",
                             num_ids_, digest.Text());
  return Success{};
}

auto IdStream::Read(int64_t begin, int64_t count, int32_t* ids) -> Status {
  // The last file that begins at or before `begin`; a sample may run on into the next ones.
  auto file = std::upper_bound(files_.begin(), files_.end(), begin,
                               [](int64_t token, const File& candidate) { return token < candidate.begin; });
  CHECK(file != files_.begin() && begin + count <= num_ids_, "tokens [{}, {}) of {}", begin, begin + count, num_ids_);
  --file;
  int64_t done = 0;
  for (; done < count; ++file) {
    CHECK(file != files_.end(), "tokens [{}, {}) of {}", begin, begin + count, num_ids_);
    const int64_t first = begin + done - file->begin;
    const int64_t part = std::min(count - done, file->file.num_ids - first);
    if (part > 0) {
      RETURN_IF_ERROR(ReadOf(file->file, first, part, ids + done));
      done += part;
    }
  }
  return Success{};
}

auto IdStream::ReadOf(const TokenFile& file, int64_t first, int64_t count, int32_t* ids) -> Status {
  const int64_t bytes = count * file.type.bytes;
  const int64_t offset = file.header_bytes + first * file.type.bytes;
  raw_.resize(static_cast<size_t>(bytes));
  const auto got = ReadUpTo(file.descriptor, raw_.data(), bytes, offset);
  FAIL_IF(!got, ExitCode::Environment, "{} file: {}", noun_, got.error().message);
  FAIL_IF(*got != bytes, ExitCode::Environment, "{} file {} ends at byte {}; it had {} bytes when the run began", noun_,
          file.path, offset + *got, file.file_bytes);
  const int64_t bad = WidenIds(raw_.data(), count, file.type, range_, ids);
  if (bad >= 0) {
    return BadId(file, noun_, format_, first + bad, raw_.data() + bad * file.type.bytes, range_);
  }
  return Success{};
}

}  // namespace shardc
