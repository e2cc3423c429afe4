#include "runtime/data/token_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "compiler/base/units.h"
#include "runtime/data/shuffle.h"

namespace shardc {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

namespace {

/// llm.c's .bin: 256 int32 of header (magic, version, number of tokens), then u16 ids.
/// Source: karpathy/llm.c, dev/data/data_common.py write_datafile.
constexpr int64_t BinHeaderBytes = 256 * 4;
constexpr int32_t BinMagic = 20240520;
constexpr int32_t BinVersion = 1;

auto TokenBytes(TokenFormat format) -> int64_t {
  switch (format) {
    case TokenFormat::Bin: return 2;
    case TokenFormat::U8: return 1;
    case TokenFormat::U16: return 2;
    case TokenFormat::U32: return 4;
  }
  return 0;
}

/// Reads until `bytes` are there or the file ends. Returns how many, or -1 with errno set.
auto PreadFully(int descriptor, void* data, int64_t bytes, int64_t offset) -> int64_t {
  int64_t done = 0;
  while (done < bytes) {
    const ssize_t n =
        pread(descriptor, static_cast<char*>(data) + done, static_cast<size_t>(bytes - done), offset + done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return -1;
    }
    if (n == 0) {
      break;
    }
    done += n;
  }
  return done;
}

}  // namespace

TokenReader::TokenReader(const DataSource& source) : source_(source) {}

TokenReader::~TokenReader() {
  for (const File& file : files_) {
    close(file.descriptor);
  }
}

auto TokenReader::Open(const DataSource& source) -> ErrorOr<std::unique_ptr<TokenReader>> {
  CHECK(source.seq > 0 && source.vocab > 0 && source.eval_tokens >= 0, "seq {}, vocab {}, eval_tokens {}", source.seq,
        source.vocab, source.eval_tokens);
  if (source.files.empty()) {
    return Fail(ExitCode::RecipeRejected, "no token files: `data.tokens` is empty");
  }
  std::unique_ptr<TokenReader> reader(new TokenReader(source));
  for (const std::string& path : source.files) {
    RETURN_IF_ERROR(reader->AddFile(path));
  }

  // A sample needs one id more than it has positions: the last target.
  const int64_t seq = source.seq;
  const int64_t eval_tokens = source.eval_tokens;
  const int64_t train_tokens = reader->num_tokens_ - eval_tokens;
  reader->num_train_samples_ = train_tokens > 0 ? (train_tokens - 1) / seq : 0;
  reader->num_eval_samples_ = eval_tokens > 0 ? (eval_tokens - 1) / seq : 0;
  if (reader->num_train_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "{} tokens in {} file{}, {} of them held out by `data.eval_tokens`: {} left to train on, and one "
                "sample takes {} "
                "(`model.seq` + 1)",
                reader->num_tokens_, source.files.size(), source.files.size() == 1 ? "" : "s", eval_tokens,
                std::max<int64_t>(train_tokens, 0), seq + 1);
  }
  if (eval_tokens > 0 && reader->num_eval_samples_ == 0) {
    return Fail(ExitCode::RecipeRejected,
                "`data.eval_tokens` is {}, and one sample takes {} (`model.seq` + 1); hold out more, or 0 for none",
                eval_tokens, seq + 1);
  }
  RETURN_IF_ERROR(reader->TakeFingerprint());
  reader->ids_.resize(static_cast<size_t>(seq) + 1);
  return reader;
}

auto TokenReader::AddFile(const std::string& path) -> Status {
  // O_NONBLOCK: a FIFO opens at once, and is refused below.
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int code = errno;
    return Fail(ExitCode::RecipeRejected, "token file {}: {}; `data.tokens` is relative to the recipe's folder", path,
                std::strerror(code));
  }
  // Closed by the destructor from here on.
  files_.push_back({.path = path, .descriptor = descriptor, .begin = num_tokens_});
  File& file = files_.back();

  struct stat info {};
  if (fstat(descriptor, &info) != 0) {
    const int code = errno;
    return Fail(ExitCode::RecipeRejected, "token file {}: {}", path, std::strerror(code));
  }
  if (!S_ISREG(info.st_mode)) {
    return Fail(ExitCode::RecipeRejected, "token file {} is {}, not a regular file", path,
                S_ISDIR(info.st_mode) ? "a folder" : "a device or pipe");
  }
  file.file_bytes = info.st_size;

  const int64_t token_bytes = TokenBytes(source_.format);
  if (source_.format != TokenFormat::Bin) {
    if (file.file_bytes % token_bytes != 0) {
      return Fail(ExitCode::RecipeRejected,
                  "token file {} has {} bytes, which is no multiple of {} (`data.format` is {})", path, file.file_bytes,
                  token_bytes, ToText(source_.format));
    }
  } else {
    int32_t header[3] = {0, 0, 0};
    if (file.file_bytes < BinHeaderBytes) {
      return Fail(
          ExitCode::RecipeRejected,
          "token file {} has {} bytes, fewer than the {} of a bin header; raw ids need `data.format` u8, u16 or u32",
          path, file.file_bytes, BinHeaderBytes);
    }
    const int64_t got = PreadFully(descriptor, header, sizeof(header), 0);
    if (got != sizeof(header)) {
      const int code = errno;
      return Fail(ExitCode::RecipeRejected, "token file {}: cannot read its header: {}", path,
                  got < 0 ? std::strerror(code) : "it is cut short");
    }
    if (header[0] != BinMagic) {
      return Fail(ExitCode::RecipeRejected,
                  "token file {} begins with {}, a bin file with {}; raw ids need `data.format` u8, u16 or u32", path,
                  header[0], BinMagic);
    }
    if (header[1] != BinVersion) {
      return Fail(ExitCode::RecipeRejected, "token file {} has bin version {}; this program reads version {} (u16 ids)",
                  path, header[1], BinVersion);
    }
    const int64_t expected = BinHeaderBytes + int64_t{header[2]} * token_bytes;
    if (header[2] < 0 || file.file_bytes != expected) {
      return Fail(ExitCode::RecipeRejected,
                  "token file {} has {} bytes, its header says {} tokens, which is {} bytes; write it anew", path,
                  file.file_bytes, header[2], expected);
    }
    file.header_bytes = BinHeaderBytes;
  }
  file.num_tokens = (file.file_bytes - file.header_bytes) / token_bytes;
  num_tokens_ += file.num_tokens;
  return Success{};
}

auto TokenReader::TakeFingerprint() -> Status {
  constexpr int64_t EndBytes = 64 << 10;
  constexpr int64_t BlockBytes = 4 << 10;
  constexpr int64_t NumBlocks = 16;
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  std::vector<uint8_t> block(EndBytes);
  for (const File& file : files_) {
    XXH3_128bits_update(&state, &file.file_bytes, sizeof(file.file_bytes));
    std::vector<Interval> stretches{{0, EndBytes}, {std::max<int64_t>(0, file.file_bytes - EndBytes), file.file_bytes}};
    for (int64_t i = 0; i < NumBlocks; ++i) {
      const int64_t begin = file.file_bytes / NumBlocks * i;
      stretches.push_back({begin, begin + BlockBytes});
    }
    for (Interval stretch : stretches) {
      stretch = Intersect(stretch, {0, file.file_bytes});
      const int64_t got = PreadFully(file.descriptor, block.data(), stretch.size(), stretch.begin);
      if (got != stretch.size()) {
        const int code = errno;
        return Fail(ExitCode::RecipeRejected, "token file {}: cannot read {} bytes at offset {}: {}", file.path,
                    stretch.size(), stretch.begin, got < 0 ? std::strerror(code) : "the file was cut short");
      }
      XXH3_128bits_update(&state, block.data(), static_cast<size_t>(got));
    }
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  fingerprint_ = fmt::format("{} file{}, {} tokens, xxh3-128 {:016x}{:016x}", files_.size(),
                             files_.size() == 1 ? "" : "s", num_tokens_, hash.high64, hash.low64);
  return Success{};
}

auto TokenReader::ReadSample(Split split, int64_t index, int32_t* tokens, int32_t* targets, int64_t stride) -> Status {
  const int64_t seq = source_.seq;
  CHECK(index >= 0, "sample {}", index);
  int64_t begin = 0;
  switch (split) {
    case Split::Train: {
      const int64_t epoch = index / num_train_samples_;
      const int64_t within = index % num_train_samples_;
      begin =
          seq * (source_.order == SampleOrder::Shuffled ? ShuffledIndex(within, num_train_samples_, source_.seed, epoch)
                                                        : within);
      break;
    }
    case Split::Eval: {
      if (index >= num_eval_samples_) {
        for (int64_t s = 0; s < seq; ++s) {
          tokens[s * stride] = 0;
          targets[s * stride] = -1;
        }
        return Success{};
      }
      begin = num_tokens_ - source_.eval_tokens + index * seq;
      break;
    }
  }
  RETURN_IF_ERROR(ReadIds(begin, seq + 1));
  for (int64_t s = 0; s < seq; ++s) {
    tokens[s * stride] = ids_[static_cast<size_t>(s)];
    targets[s * stride] = ids_[static_cast<size_t>(s) + 1];
  }
  return Success{};
}

auto TokenReader::ReadIds(int64_t begin, int64_t count) -> Status {
  // The last file that begins at or before `begin`; a sample may run on into the next ones.
  auto file = std::upper_bound(files_.begin(), files_.end(), begin,
                               [](int64_t token, const File& candidate) { return token < candidate.begin; });
  CHECK(file != files_.begin() && begin + count <= num_tokens_, "tokens [{}, {}) of {}", begin, begin + count,
        num_tokens_);
  --file;
  int64_t done = 0;
  for (; done < count; ++file) {
    CHECK(file != files_.end(), "tokens [{}, {}) of {}", begin, begin + count, num_tokens_);
    const int64_t first = begin + done - file->begin;
    const int64_t part = std::min(count - done, file->num_tokens - first);
    if (part > 0) {
      RETURN_IF_ERROR(ReadIdsOf(*file, first, part, ids_.data() + done));
      done += part;
    }
  }
  return Success{};
}

template <class T>
static auto Widen(const std::vector<uint8_t>& raw, int64_t count, int64_t vocab, int32_t* ids) -> int64_t {
  // The maximum is checked once for the whole stretch, so that the loop vectorises.
  T largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    T id;
    std::memcpy(&id, raw.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    largest = std::max(largest, id);
    ids[i] = static_cast<int32_t>(id);
  }
  if (static_cast<int64_t>(largest) < vocab) {
    return -1;
  }
  for (int64_t i = 0;; ++i) {
    T id;
    std::memcpy(&id, raw.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    if (static_cast<int64_t>(id) >= vocab) {
      return i;
    }
  }
}

auto TokenReader::ReadIdsOf(const File& file, int64_t first, int64_t count, int32_t* ids) -> Status {
  const int64_t token_bytes = TokenBytes(source_.format);
  const int64_t offset = file.header_bytes + first * token_bytes;
  raw_.resize(static_cast<size_t>(count * token_bytes));
  const int64_t got = PreadFully(file.descriptor, raw_.data(), count * token_bytes, offset);
  if (got < 0) {
    const int code = errno;
    return Fail(ExitCode::Environment, "token file {}: cannot read {} bytes at offset {}: {}", file.path,
                count * token_bytes, offset, std::strerror(code));
  }
  if (got != count * token_bytes) {
    return Fail(ExitCode::Environment, "token file {} ends at byte {}; it had {} bytes when the run began", file.path,
                offset + got, file.file_bytes);
  }
  int64_t bad = -1;
  switch (source_.format) {
    case TokenFormat::U8: bad = Widen<uint8_t>(raw_, count, source_.vocab, ids); break;
    case TokenFormat::Bin:
    case TokenFormat::U16: bad = Widen<uint16_t>(raw_, count, source_.vocab, ids); break;
    case TokenFormat::U32: bad = Widen<uint32_t>(raw_, count, source_.vocab, ids); break;
  }
  if (bad >= 0) {
    return Fail(
        ExitCode::RecipeRejected,
        "token file {}: id {} at byte {} (token {} of the file), and `model.vocab` is {}; the file has another format "
        "than `data.format` = {}, or the model's vocabulary is too small",
        file.path, static_cast<uint32_t>(ids[bad]), offset + bad * token_bytes, first + bad, source_.vocab,
        ToText(source_.format));
  }
  return Success{};
}

}  // namespace shardc
