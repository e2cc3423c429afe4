#include "compiler/checkpoint/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "compiler/base/files.h"
#include "compiler/base/json_reader.h"
#include "compiler/checkpoint/published_config.h"
#include "compiler/checkpoint/published_rows.h"

namespace shardc {

using nlohmann::json;

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

auto ReadObject(const std::string& path) -> ErrorOr<json> {
  std::string text;
  RETURN_IF_ERROR(ReadBlocks(path, [&](std::string_view block) -> Status {
    text += block;
    return Success{};
  }));
  auto object = ParseJson(text, ExitCode::Usage);
  if (!object || !object->is_object()) {
    return RefuseFile(path, "it holds no JSON object{}", object ? "" : fmt::format(": {}", object.error().message));
  }
  return object;
}

/// Returns the largest id of a token in a tokenizer.json; -1 if it has no token.
auto LargestId(const json& tokenizer) -> int64_t {
  int64_t largest = -1;
  const auto see = [&](const json& id) {
    largest = std::max(largest, id.is_number_integer() ? id.get<int64_t>() : -1);
  };
  const auto member = [](const json& object, const char* name) {
    const auto found = object.is_object() ? object.find(name) : object.end();
    return found == object.end() ? nullptr : &*found;
  };
  const json* const model = member(tokenizer, "model");
  if (const json* const vocab = model == nullptr ? nullptr : member(*model, "vocab"); vocab != nullptr) {
    if (vocab->is_array()) {
      // The place of a token is its id.
      largest = std::ssize(*vocab) - 1;
    } else {
      std::ranges::for_each(*vocab, see);
    }
  }
  if (const json* const added = member(tokenizer, "added_tokens"); added != nullptr) {
    for (const json& token : *added) {
      if (const json* const id = member(token, "id"); id != nullptr) {
        see(*id);
      }
    }
  }
  return largest;
}

auto CheckIds(const std::string& path, int64_t vocab) -> Status {
  ASSIGN_OR_RETURN(const auto tokenizer, ReadObject(path));
  const int64_t largest = LargestId(tokenizer);
  return largest < vocab ? Status(Success{})
                         : RefuseFile(path, "its largest id is {}, and the model takes ids below {}", largest, vocab);
}

}  // namespace

auto CopyTokenizer(const std::string& from, const Descriptor& to, int64_t vocab) -> Status {
  const auto directory = OpenDirectory(PosixFs(), from);
  FAIL_IF(!directory, ExitCode::Usage, "--tokenizer: {}", directory.error().message);
  bool has_tokens = false;
  for (const TokenizerFile& row : TokenizerFiles) {
    ASSIGN_OR_RETURN(const auto there, StatusAt(*directory, row.name));
    if (there.kind == EntryKind::Missing) {
      continue;
    }
    const std::string path = from + "/" + row.name;
    if (std::string_view(row.name) == "tokenizer.json") {
      RETURN_IF_ERROR(CheckIds(path, vocab));
    }
    ASSIGN_OR_RETURN(auto file, AtomicFile::CreateAt(to, row.name));
    RETURN_IF_ERROR(ReadBlocks(path, [&](std::string_view block) { return file.Append(block); }));
    RETURN_IF_ERROR(file.Commit());
    has_tokens = has_tokens || row.has_tokens;
  }
  return has_tokens
             ? Status(Success{})
             : Fail(ExitCode::Usage, "--tokenizer {} has no tokenizer.json, tokenizer.model or vocab.json", from);
}

auto SpecialTokens(const std::string& from, int64_t vocab) -> ErrorOr<std::map<std::string, std::string>> {
  std::map<std::string, std::string> tokens;
  const std::string path = from + "/" + ConfigName;
  if (std::error_code unknown; !std::filesystem::exists(path, unknown)) {
    return tokens;
  }
  ASSIGN_OR_RETURN(const auto config, ReadObject(path));
  for (const std::string_view key : published::SpecialTokenKeys) {
    const json value = config.value(key, json());
    // Some models say by -1 that they have no such token.
    const auto is_id = [&](const json& id) { return id.is_number_integer() && id < vocab; };
    if (!value.is_null() && !(value.is_array() ? std::ranges::all_of(value, is_id) : is_id(value))) {
      return RefuseFile(path, "`{}` is {:.60}, and the model takes ids below {}", key, value.dump(), vocab);
    }
    tokens[std::string(key)] = value.dump();
  }
  return tokens;
}

}  // namespace shardc
