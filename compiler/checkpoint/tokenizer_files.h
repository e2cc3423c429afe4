// Files of a tokenizer that an exported model takes from a published one.
#pragma once

#include <string>

#include "compiler/base/error_or.h"
#include "compiler/base/fs.h"

namespace shardc {

/// Copies the files of the tokenizer in the folder `from`. Errors: Usage, if the folder has none, or one with an id
/// that is not below `vocab`.
auto CopyTokenizer(const std::string& from, const Descriptor& to, int64_t vocab) -> Status;

}  // namespace shardc
