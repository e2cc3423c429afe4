// A text with parts replaced by others.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/base/check.h"

namespace shardc {

using Edits = std::vector<std::pair<std::string, std::string>>;

/// Returns `text` with the first place of each first text replaced by the second. A text that is not there ends the
/// test.
inline auto Edited(std::string text, const Edits& edits) -> std::string {
  for (const auto& [from, to] : edits) {
    const size_t at = text.find(from);
    CHECK(at != std::string::npos, "the text has no `{}`", from);
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace shardc
