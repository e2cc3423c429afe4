#include "compiler/checkpoint/tokenizer_files.h"

#include <algorithm>
#include <array>

#include "compiler/base/files.h"

namespace shardc {

namespace {

struct TokenizerFile {
  const char* name;
  /// True if the file alone makes a tokenizer.
  bool has_tokens;
};
constexpr auto TokenizerFiles = std::to_array<TokenizerFile>({{"tokenizer.json", true},
                                                              {"tokenizer.model", true},
                                                              {"vocab.json", true},
                                                              {"merges.txt", false},
                                                              {"tokenizer_config.json", false},
                                                              {"special_tokens_map.json", false},
                                                              {"added_tokens.json", false},
                                                              {"chat_template.jinja", false},
                                                              {"generation_config.json", false}});

template <class... Arguments>
auto RefuseFile(const std::string& path, fmt::format_string<Arguments...> text, Arguments&&... arguments) -> Error {
  return {ExitCode::Usage,
          fmt::format("--tokenizer: {}: {}", path, fmt::format(text, std::forward<Arguments>(arguments)...))};
}

/// Hands the file on in blocks. Published models often are folders of links.
auto ReadBlocks(const std::string& path, const auto& take) -> Status {
  const auto file = OpenToRead(path);
  if (!file) {
    return RefuseFile(path, "{}", file.error().message);
  }
  const auto bytes = FileBytes(*file);
  if (!bytes) {
    return RefuseFile(path, "{}", bytes.error().message);
  }
  std::string block(size_t{1} << 20, '\0');
  for (int64_t offset = 0; offset < *bytes;) {
    const int64_t count = std::min(*bytes - offset, std::ssize(block));
    const auto read = ReadAll(*file, block.data(), count, offset);
    if (!read) {
      return RefuseFile(path, "{}", read.error().message);
    }
    RETURN_IF_ERROR(take(std::string_view(block).substr(0, static_cast<size_t>(count))));
    offset += count;
  }
  return Success{};
}

}  // namespace

auto CopyTokenizer(const std::string& from, const Descriptor& to) -> Status {
  const auto directory = OpenDirectory(PosixFs(), from);
  if (!directory) {
    return Fail(ExitCode::Usage, "--tokenizer: {}", directory.error().message);
  }
  bool has_tokens = false;
  for (const TokenizerFile& row : TokenizerFiles) {
    const auto there = StatusAt(*directory, row.name);
    if (!there) {
      return there.error();
    }
    if (there->kind == EntryKind::Missing) {
      continue;
    }
    const std::string path = from + "/" + row.name;
    auto file = AtomicFile::CreateAt(to, row.name);
    if (!file) {
      return file.error();
    }
    RETURN_IF_ERROR(ReadBlocks(path, [&](std::string_view block) { return file->Append(block); }));
    RETURN_IF_ERROR(file->Commit());
    has_tokens = has_tokens || row.has_tokens;
  }
  return has_tokens
             ? Status(Success{})
             : Fail(ExitCode::Usage, "--tokenizer {} has no tokenizer.json, tokenizer.model or vocab.json", from);
}

}  // namespace shardc
