// Files of wide ids that are read as narrow ones: each id becomes two or four, and none of them need lie outside of the
// vocabulary.
#pragma once

#include <optional>
#include <string>

#include "compiler/data/token_file.h"

namespace shardc {

/// Returns the format that the file looks like, if it is a wider one than `format`: the ids at odd places have another
/// distribution than those at even places, which no text has. Looks at the first 64 KiB; says nothing of files of less
/// than 4 KiB, of formats with a header, or of files that cannot be read.
auto LooksWider(const std::string& path, TokenFormat format, const FilePurpose& purpose) -> std::optional<TokenFormat>;

/// Returns a text that is the same for two paths of one file: device and inode, or the path if no file is there.
auto IdentityOfPath(const std::string& path) -> std::string;

}  // namespace shardc
