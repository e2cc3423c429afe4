#include "runtime/data/id_stream.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/base/token_file_header.h"
#include "compiler/base/units.h"

namespace shardc {

namespace {

auto TokenBytes(TokenFormat format) -> int64_t {
  switch (format) {
    case TokenFormat::Bin: return 2;
    case TokenFormat::U8: return 1;
    case TokenFormat::U16: return 2;
    case TokenFormat::U32: return 4;
  }
  return 0;
}

}  // namespace

auto IdStream::Open(const std::vector<std::string>& files, TokenFormat format, int64_t vocab, const Use& use)
    -> ErrorOr<std::unique_ptr<IdStream>> {
  std::unique_ptr<IdStream> stream(new IdStream(format, vocab, use));
  for (const std::string& path : files) {
    RETURN_IF_ERROR(stream->AddFile(path));
  }
  RETURN_IF_ERROR(stream->TakeFingerprint());
  return stream;
}

auto IdStream::AddFile(const std::string& path) -> Status {
  // O_NONBLOCK: a FIFO opens at once, and is refused below.
  const int descriptor = PosixFs().Open(AT_FDCWD, path.c_str(), O_RDONLY | O_NONBLOCK, 0);
  if (descriptor < 0) {
    const int code = errno;
    return Fail(ExitCode::RecipeRejected, "{} file {}: {}; `{}` is relative to the recipe's folder", use_.noun, path,
                std::strerror(code), use_.key);
  }
  files_.push_back({.path = path, .descriptor = Descriptor(PosixFs(), descriptor, path), .begin = num_ids_});
  File& file = files_.back();

  const auto status = StatusOf(file.descriptor);
  if (!status) {
    return Fail(ExitCode::RecipeRejected, "{} file: {}", use_.noun, status.error().message);
  }
  if (status->kind != EntryKind::File) {
    return Fail(ExitCode::RecipeRejected, "{} file {} is {}, not a regular file", use_.noun, path,
                status->kind == EntryKind::Directory ? "a folder" : "a device or pipe");
  }
  file.file_bytes = status->bytes;

  const int64_t token_bytes = TokenBytes(format_);
  TokenFileHeader header;
  if (file.file_bytes >= TokenFileHeader::Bytes) {
    if (const Status read = ReadAll(file.descriptor, &header, sizeof(header), 0); !read) {
      return Fail(ExitCode::RecipeRejected, "{} file: {}", use_.noun, read.error().message);
    }
  }
  if (format_ != TokenFormat::Bin) {
    // Magic, version and a count that is that of the file: no raw ids have all three by chance.
    if (header.magic == TokenFileHeader::Magic && header.version == TokenFileHeader::Version &&
        file.file_bytes == TokenFileHeader::Bytes + int64_t{header.num_tokens} * TokenBytes(TokenFormat::Bin)) {
      return Fail(ExitCode::RecipeRejected,
                  "{} file {} has llm.c's header, which says {} tokens, as many as follow it; `data.format` is {}, "
                  "whose files have no header: set `data.format` to bin",
                  use_.noun, path, header.num_tokens, ToText(format_));
    }
    if (file.file_bytes % token_bytes != 0) {
      return Fail(ExitCode::RecipeRejected, "{} file {} has {} bytes, which is no multiple of {} (`data.format` is {})",
                  use_.noun, path, file.file_bytes, token_bytes, ToText(format_));
    }
  } else {
    if (file.file_bytes < TokenFileHeader::Bytes) {
      return Fail(ExitCode::RecipeRejected,
                  "{} file {} has {} bytes, so it has no llm.c header, which is {}; if it holds raw ids, set "
                  "`data.format` to u8, u16 or u32",
                  use_.noun, path, file.file_bytes, TokenFileHeader::Bytes);
    }
    if (header.magic != TokenFileHeader::Magic) {
      return Fail(ExitCode::RecipeRejected,
                  "{} file {} has no llm.c header: it begins with {}, not {}; if it holds raw ids, set `data.format` "
                  "to u8, u16 or u32",
                  use_.noun, path, header.magic, TokenFileHeader::Magic);
    }
    if (header.version != TokenFileHeader::Version) {
      return Fail(ExitCode::RecipeRejected, "{} file {} has bin version {}; this program reads version {} (u16 ids)",
                  use_.noun, path, header.version, TokenFileHeader::Version);
    }
    const int64_t expected = TokenFileHeader::Bytes + int64_t{header.num_tokens} * token_bytes;
    if (header.num_tokens < 0 || file.file_bytes != expected) {
      return Fail(ExitCode::RecipeRejected,
                  "{} file {} has {} bytes, its header says {} tokens, which is {} bytes; write it again", use_.noun,
                  path, file.file_bytes, header.num_tokens, expected);
    }
    file.header_bytes = TokenFileHeader::Bytes;
  }
  file.num_ids = (file.file_bytes - file.header_bytes) / token_bytes;
  num_ids_ += file.num_ids;
  return Success{};
}

auto IdStream::TakeFingerprint() -> Status {
  constexpr int64_t EndBytes = 64 << 10;
  constexpr int64_t BlockBytes = 4 << 10;
  constexpr int64_t NumBlocks = 16;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<uint8_t> block(EndBytes);
  for (const File& file : files_) {
    XXH3_128bits_update(&state, &file.file_bytes, sizeof(file.file_bytes));
    std::vector<Interval> ranges{{0, EndBytes}, {std::max<int64_t>(0, file.file_bytes - EndBytes), file.file_bytes}};
    for (int64_t i = 0; i < NumBlocks; ++i) {
      const int64_t begin = file.file_bytes / NumBlocks * i;
      ranges.push_back({begin, begin + BlockBytes});
    }
    for (Interval range : ranges) {
      range = Intersect(range, {0, file.file_bytes});
      if (const Status read = ReadAll(file.descriptor, block.data(), range.size(), range.begin); !read) {
        return Fail(ExitCode::RecipeRejected, "{} file: {}", use_.noun, read.error().message);
      }
      XXH3_128bits_update(&state, block.data(), static_cast<size_t>(range.size()));
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  fingerprint_ = fmt::format("{} file{}, {} tokens, xxh3-128 {:016x}{:016x}", files_.size(),
                             files_.size() == 1 ? "" : "s", num_ids_, hash.high64, hash.low64);
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
    const int64_t part = std::min(count - done, file->num_ids - first);
    if (part > 0) {
      RETURN_IF_ERROR(ReadOf(*file, first, part, ids + done));
      done += part;
    }
  }
  return Success{};
}

/// The index of the first id at or above `vocab`, or -1. `none`: 1 if the greatest number is no id but says that there
/// is none, which becomes -1; else 0.
template <class T>
static auto Widen(const std::vector<uint8_t>& raw, int64_t count, int64_t vocab, T none, int32_t* ids) -> int64_t {
  const auto number = [&](int64_t i) {
    T id;
    std::memcpy(&id, raw.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    // The greatest comes round to 0.
    return static_cast<T>(id + none);
  };
  // The maximum is checked once for the whole range, so that the loop vectorises.
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const T id = number(i);
    largest = std::max(largest, id);
    ids[i] = static_cast<int32_t>(id - none);
  }
  const int64_t end = vocab + static_cast<int64_t>(none);
  if (static_cast<int64_t>(largest) < end) {
    return -1;
  }
  for (int64_t i = 0;; ++i) {
    if (static_cast<int64_t>(number(i)) >= end) {
      return i;
    }
  }
}

auto IdStream::ReadOf(const File& file, int64_t first, int64_t count, int32_t* ids) -> Status {
  const int64_t token_bytes = TokenBytes(format_);
  const int64_t offset = file.header_bytes + first * token_bytes;
  raw_.resize(static_cast<size_t>(count * token_bytes));
  const auto got = ReadUpTo(file.descriptor, raw_.data(), count * token_bytes, offset);
  if (!got) {
    return Fail(ExitCode::Environment, "{} file: {}", use_.noun, got.error().message);
  }
  if (*got != count * token_bytes) {
    return Fail(ExitCode::Environment, "{} file {} ends at byte {}; it had {} bytes when the run began", use_.noun,
                file.path, offset + *got, file.file_bytes);
  }
  int64_t bad = -1;
  switch (format_) {
    case TokenFormat::U8: bad = Widen<uint8_t>(raw_, count, vocab_, use_.none, ids); break;
    case TokenFormat::Bin:
    case TokenFormat::U16: bad = Widen<uint16_t>(raw_, count, vocab_, use_.none, ids); break;
    case TokenFormat::U32: bad = Widen<uint32_t>(raw_, count, vocab_, use_.none, ids); break;
  }
  if (bad >= 0) {
    return Fail(ExitCode::RecipeRejected,
                "{} file {}: id {} at byte {} (token {} of the file), and {} is {}; the file has another format "
                "than `data.format` = {}, or {} is too small",
                use_.noun, file.path, static_cast<uint32_t>(ids[bad]), offset + bad * token_bytes, first + bad,
                use_.vocab, vocab_, ToText(format_), use_.vocab);
  }
  return Success{};
}

}  // namespace shardc
