// shardc tokenize --bytes FILES -o OUT: makes each byte a token of a file in llm.c's .bin format. The files are read
// block by block, so they may be larger than memory.

#include <cstring>
#include <memory>
#include <vector>

#include "compiler/base/files.h"
#include "compiler/base/printable.h"
#include "compiler/data/replaced_input.h"
#include "compiler/data/token_file_header.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"

namespace shardc {

namespace {

struct TokenizeOptions {
  bool bytes = false;
  std::vector<std::string> files;
  std::string output;
};

constexpr int64_t MaxTokens = TokenFileHeader::MaxTokens;

}  // namespace

static auto TooMany() -> Error {
  return Fail(ExitCode::DoesNotFit, "more than {} tokens do not fit one file of this format; make several", MaxTokens);
}

/// Appends the bytes of one file as tokens; returns how many. Errors: there are more than `most`.
static auto AppendFile(const std::string& path, int64_t most, AtomicFile& output) -> ErrorOr<int64_t> {
  const auto file = OpenToRead(path);
  FAIL_IF(!file, file.error().code, "cannot read {}: {}", path, file.error().message);
  if (const auto status = StatusOf(*file); status && status->kind == EntryKind::File && status->bytes > most) {
    return TooMany();
  }
  std::vector<unsigned char> bytes(1 << 20);
  std::string tokens;
  int64_t num_tokens = 0;
  for (;;) {
    const auto count = ReadNext(*file, bytes.data(), std::ssize(bytes));
    if (!count) {
      return Error{ExitCode::Usage, count.error().message};
    }
    if (*count == 0) {
      return num_tokens;
    }
    tokens.assign(2 * static_cast<size_t>(*count), '\0');
    for (size_t i = 0; i < static_cast<size_t>(*count); ++i) {
      tokens[2 * i] = static_cast<char>(bytes[i]);
    }
    num_tokens += *count;
    // A device or pipe does not say how much it has.
    if (num_tokens > most) {
      return TooMany();
    }
    RETURN_IF_ERROR(output.Append(tokens));
  }
}

static auto Tokenize(const TokenizeOptions& options) -> Status {
  FAIL_IF(!options.bytes, ExitCode::Usage, "tokenize makes tokens of bytes only: add --bytes");
  RETURN_IF_ERROR(CheckReplacesNone("-o", options.output, options.files));
  RETURN_IF_ERROR(CheckHasOffsets("-o", options.output));
  ASSIGN_OR_RETURN(auto output, AtomicFile::Create(options.output));
  RETURN_IF_ERROR(output.Append(TokenFileHeaderBytes(0)));
  int64_t num_tokens = 0;
  for (const std::string& file : options.files) {
    ASSIGN_OR_RETURN(const auto count, AppendFile(file, MaxTokens - num_tokens, output));
    num_tokens += count;
  }
  FAIL_IF(num_tokens == 0, ExitCode::Usage, "the files hold no bytes");
  RETURN_IF_ERROR(output.Overwrite(0, TokenFileHeaderBytes(num_tokens)));
  RETURN_IF_ERROR(output.Commit());
  return WriteResult(fmt::format("{}: {} tokens\n", PrintableLine(options.output), num_tokens));
}

auto DeclareTokenize(CommandOptions& options) -> Action {
  const auto values = std::make_shared<TokenizeOptions>();
  options.Positionals("FILES", values->files, "text files, in the order of their tokens");
  options.Flag("--bytes", values->bytes, "each byte is a token: ids from 0 to 255");
  options.Text("-o,--output", values->output, "OUT.bin", "the token file to write", true);
  return [values] { return ExitCodeOf(Tokenize(*values)); };
}

}  // namespace shardc
