// An id that looks like the end of documents in files without an index, and that the recipe does not declare.
//
// Evidence, all of it: each file ends with this id, or each begins with it; it is the greatest id in the files, or one
// of 0, 1 and 2, where tokenizers have the ids that stand for no text; it occurs 16 times or more, and there are 16 ids
// or more for each time. The last id of a text alone says nothing: texts end with a full stop or a line end, which have
// another use.
#pragma once

#include <optional>

#include "compiler/data/data_files.h"

namespace shardc {

struct UndeclaredEnd {
  int64_t id = 0;
  int64_t count = 0;
  /// True if files end with it; else they begin with it.
  bool ends_files = false;
};

/// Returns the id that looks like an end; nothing of Megatron's format, whose index has the ends.
/// Cost: reads the files, if the ids at their ends are such. Errors: those of OpenTokenFile; a file that cannot be
/// read.
auto FindUndeclaredEnd(const FileList& list, TokenFormat format) -> ErrorOr<std::optional<UndeclaredEnd>>;

/// Returns words for a warning about the files of a source.
auto ToText(const UndeclaredEnd& end, const FileList& list) -> std::string;

}  // namespace shardc
