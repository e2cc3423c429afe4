// Texts that the repository records. SHARDC_UPDATE_GOLDENS=1 (`tools/dev goldens --update`) writes them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace shardc {

/// Returns how a text differs from what is recorded in its place.
using ShowDifference = std::function<std::string(const std::string& recorded)>;

/// Expects that the file `path` of the repository has the text. A failure prints the difference, by `show` if there is
/// one, and `accept`, the command that writes the file. If goldens are being updated, the file is written instead.
auto ExpectRecorded(const std::string& path, const std::string& text, std::string_view accept,
                    const ShowDifference& show = {}) -> void;

}  // namespace shardc
