// Files of a tokenizer that an exported model takes from a published one.
#pragma once

#include <map>
#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// Copies the files of the tokenizer in the folder `from`. Errors: Usage, if the folder has none, or one with an id
/// that is not below `vocab`.
auto CopyTokenizer(const std::string& from, const Descriptor& to, int64_t vocab) -> Status;

/// Returns the ids of special tokens that config.json of the folder has, as JSON: "bos_token_id" and "1". Nothing if
/// the folder has no config.json. Errors: Usage, as of CopyTokenizer.
auto SpecialTokens(const std::string& from, int64_t vocab) -> ErrorOr<std::map<std::string, std::string>>;

}  // namespace shardc
