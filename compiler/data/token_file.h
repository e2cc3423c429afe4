// One file of ids, opened and judged by its size and its first bytes: does it have the header and the size that its
// format asks for, and how many ids does it hold? Nothing is mapped, so a file that somebody cuts short is a clean
// error.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/base/recipe_words.h"

namespace shardc {

/// How an id lies in its file: a little-endian whole number.
struct IdType {
  int64_t bytes = 0;
  /// Negative numbers are outside of every vocabulary; messages show them as they are.
  bool is_signed = false;

  friend auto operator==(const IdType&, const IdType&) -> bool = default;
};

struct TokenFile {
  std::string path;
  Descriptor descriptor;
  int64_t file_bytes = 0;
  /// Before the first id.
  int64_t header_bytes = 0;
  IdType type;
  int64_t num_ids = 0;
};

/// What the files are for, in the words of messages.
struct FilePurpose {
  /// "token": begins "token file ...".
  std::string noun = "token";
  /// The recipe's key that names the files.
  std::string key = "data.tokens";
};

/// Opens a file and judges its header and size. Of Megatron's files, the header and the size of the index too.
/// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
auto OpenTokenFile(const std::string& path, TokenFormat format, const FilePurpose& purpose) -> ErrorOr<TokenFile>;

/// Opens a regular file for reading. Errors: as OpenTokenFile.
auto OpenDataFile(const std::string& path, const FilePurpose& purpose) -> ErrorOr<Descriptor>;

/// Is nothing there under this name? Then another machine may have the file.
auto IsMissing(const std::string& path) -> bool;

}  // namespace shardc
