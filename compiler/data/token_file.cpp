#include "compiler/data/token_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "compiler/data/megatron_index.h"
#include "compiler/data/token_file_header.h"

namespace shardc {

static auto HasLlama3Header(const TokenFileHeader& header) -> bool {
  return header.magic == TokenFileHeader::Llama3Magic && header.version == TokenFileHeader::Llama3Version;
}

/// A file that llm.c writes for Llama 3: another header than that of `data.format` = bin.
static auto RefuseLlama3(const TokenFile& file, const std::string& noun) -> Status {
  return Fail(ExitCode::RecipeRejected,
              "{0} file {1} has the header of llm.c's files for Llama 3 (magic {2}, version {3}, u32 ids), which this "
              "program does not read; cut the header off (tail -c +{4} {1} > ids.u32) and set `data.format` to u32",
              noun, file.path, TokenFileHeader::Llama3Magic, TokenFileHeader::Llama3Version,
              TokenFileHeader::Bytes + 1);
}

/// Returns true if bytes are those of a text, whatever its encoding. Few bytes say nothing. No UTF-8 has the byte 255,
/// and places without a target consist of it.
static auto IsText(std::string_view bytes) -> bool {
  constexpr size_t Least = 16;
  return bytes.size() >= Least && std::ranges::all_of(bytes, [](unsigned char c) {
           return (c >= ' ' && c < 0xFF) || c == '\t' || c == '\n' || c == '\r' || c == '\f';
         });
}

/// Refuses a text, which others tokenize as they load it. As bytes it has tokens, and by its name alone text is told
/// from raw ids.
static auto RefuseText(const std::string& path, std::string_view beginning, TokenFormat format, const std::string& noun)
    -> Status {
  const std::filesystem::path file(path);
  const std::string ending = file.extension().string();
  const bool is_lines = ending == ".jsonl" || ending == ".ndjson" || ending == ".json";
  const bool is_of_text = is_lines || ending == ".txt" || ending == ".md" || ending == ".csv";
  const bool has_header = format == TokenFormat::Bin || format == TokenFormat::Megatron;
  if (format == TokenFormat::U8 || !IsText(beginning) || !(has_header || is_of_text)) {
    return Success{};
  }
  const std::string stem = (file.parent_path() / file.stem()).string() + (ending == ".bin" ? "-ids" : "");
  return Fail(ExitCode::RecipeRejected,
              "{0} file {1} is text, and no ids; make ids of {2} by `tools/tokenize_text.py --tokenizer DIR {1} -o "
              "{3}` and set `data.format` to megatron, or of its bytes by `shardc tokenize --bytes {1} -o {3}.bin`",
              noun, path, is_lines ? "its field `text`" : "it", stem);
}

/// A file of `format` that has no header.
static auto JudgeRaw(TokenFile& file, const TokenFileHeader& header, TokenFormat format, const std::string& noun)
    -> Status {
  if (HasLlama3Header(header) &&
      file.file_bytes == TokenFileHeader::Bytes + int64_t{header.num_tokens} * TokenFileHeader::Llama3IdBytes) {
    return RefuseLlama3(file, noun);
  }
  // Magic, version and a count that is that of the file: no raw ids have all three by chance.
  if (header.magic == TokenFileHeader::Magic && header.version == TokenFileHeader::Version &&
      file.file_bytes == TokenFileHeader::Bytes + int64_t{header.num_tokens} * TokenFileHeader::IdBytes) {
    return Fail(ExitCode::RecipeRejected,
                "{} file {} has llm.c's header, which says {} tokens, as many as follow it; `data.format` is {}, "
                "whose files have no header: set `data.format` to bin",
                noun, file.path, header.num_tokens, ToText(format));
  }
  FAIL_IF(file.file_bytes % file.type.bytes != 0, ExitCode::RecipeRejected,
          "{} file {} has {} bytes, which is no multiple of {} (`data.format` is {})", noun, file.path, file.file_bytes,
          file.type.bytes, ToText(format));
  return Success{};
}

/// A file with llm.c's header.
static auto JudgeBin(TokenFile& file, const TokenFileHeader& header, const std::string& noun) -> Status {
  FAIL_IF(file.file_bytes < TokenFileHeader::Bytes, ExitCode::RecipeRejected,
          "{} file {} has {} bytes, so it has no llm.c header, which is {}; if it holds raw ids, set "
          "`data.format` to u8, u16 or u32",
          noun, file.path, file.file_bytes, TokenFileHeader::Bytes);
  if (HasLlama3Header(header)) {
    return RefuseLlama3(file, noun);
  }
  if (header.magic != TokenFileHeader::Magic) {
    const bool is_indexed = file.path.ends_with(".bin") && !IsMissing(IndexPathOf(file.path));
    return Fail(ExitCode::RecipeRejected, "{} file {} has no llm.c header: it begins with {}, not {}; {}", noun,
                file.path, header.magic, TokenFileHeader::Magic,
                is_indexed ? "an .idx lies beside it, so set `data.format` to megatron"
                           : "if it holds raw ids, set `data.format` to u8, u16 or u32");
  }
  FAIL_IF(header.version != TokenFileHeader::Version, ExitCode::RecipeRejected,
          "{} file {} has bin version {}; this program reads version {} (u16 ids)", noun, file.path, header.version,
          TokenFileHeader::Version);
  const int64_t expected = TokenFileHeader::Bytes + int64_t{header.num_tokens} * file.type.bytes;
  FAIL_IF(header.num_tokens < 0 || file.file_bytes != expected, ExitCode::RecipeRejected,
          "{} file {} has {} bytes, its header says {} tokens, which is {} bytes; write it again", noun, file.path,
          file.file_bytes, header.num_tokens, expected);
  file.header_bytes = TokenFileHeader::Bytes;
  return Success{};
}

static auto JudgeMegatron(TokenFile& file, const FilePurpose& purpose) -> Status {
  ASSIGN_OR_RETURN(auto index, MegatronIndex::Open(file.path, file.file_bytes, purpose));
  file.type = index.type();
  return Success{};
}

auto OpenTokenFile(const std::string& path, TokenFormat format, const FilePurpose& purpose) -> ErrorOr<TokenFile> {
  ASSIGN_OR_RETURN(auto descriptor, OpenDataFile(path, purpose));
  const auto file_bytes = FileBytes(descriptor);
  FAIL_IF(!file_bytes, ExitCode::RecipeRejected, "{} file: {}", purpose.noun, file_bytes.error().message);
  TokenFile file{.path = path, .descriptor = std::move(descriptor), .file_bytes = *file_bytes, .type = {}};
  std::string beginning(static_cast<size_t>(std::min(file.file_bytes, TokenFileHeader::Bytes)), '\0');
  if (const Status read = ReadAll(file.descriptor, beginning.data(), std::ssize(beginning), 0); !read) {
    return Fail(ExitCode::RecipeRejected, "{} file: {}", purpose.noun, read.error().message);
  }
  RETURN_IF_ERROR(RefuseText(path, beginning, format, purpose.noun));
  TokenFileHeader header;
  if (std::ssize(beginning) == TokenFileHeader::Bytes) {
    std::memcpy(&header, beginning.data(), sizeof(header));
  }
  Status judged = Success{};
  switch (format) {
    case TokenFormat::Bin:
      file.type = {.bytes = TokenFileHeader::IdBytes};
      judged = JudgeBin(file, header, purpose.noun);
      break;
    case TokenFormat::U8:
    case TokenFormat::U16:
    case TokenFormat::U32:
      file.type = {.bytes = format == TokenFormat::U8 ? 1 : format == TokenFormat::U16 ? 2 : 4};
      judged = JudgeRaw(file, header, format, purpose.noun);
      break;
    case TokenFormat::Megatron: judged = JudgeMegatron(file, purpose); break;
  }
  RETURN_IF_ERROR(judged);
  file.num_ids = (file.file_bytes - file.header_bytes) / file.type.bytes;
  return file;
}

auto ReadRawIds(const TokenFile& file, std::string_view noun, int64_t begin, int64_t count, std::vector<uint8_t>& raw)
    -> Status {
  raw.resize(static_cast<size_t>(count * file.type.bytes));
  const Status read =
      ReadAll(file.descriptor, raw.data(), std::ssize(raw), file.header_bytes + begin * file.type.bytes);
  return read ? read : Status(Fail(ExitCode::Environment, "{} file: {}", noun, read.error().message));
}

}  // namespace shardc
