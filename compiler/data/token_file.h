// One file of ids, opened and judged by its size and its first bytes: does it have the header and the size that its
// format asks for, and how many ids does it hold? Nothing is mapped, so a file that somebody cuts short is a clean
// error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"
#include "compiler/base/recipe_words.h"
#include "compiler/data/id_type.h"
#include "compiler/data/open_data_file.h"

namespace shardc {

struct TokenFile {
  std::string path;
  Descriptor descriptor;
  int64_t file_bytes = 0;
  /// Before the first id.
  int64_t header_bytes = 0;
  IdType type;
  int64_t num_ids = 0;
};

/// Opens a file and judges its header and size. Of Megatron's files, the header and the size of the index too.
/// Errors: ExitCode::RecipeRejected, naming the file, what was found and the remedy.
auto OpenTokenFile(const std::string& path, TokenFormat format, const FilePurpose& purpose) -> ErrorOr<TokenFile>;

/// Reads ids [begin, begin + count) of a file as they lie there. Errors: ExitCode::Environment, beginning with the
/// noun.
auto ReadRawIds(const TokenFile& file, std::string_view noun, int64_t begin, int64_t count, std::vector<uint8_t>& raw)
    -> Status;

}  // namespace shardc
