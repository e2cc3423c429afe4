// Texts that the repository records. SHARDC_UPDATE_GOLDENS=1 (`tools/dev goldens --update`) writes them.
#pragma once

#include <string>
#include <string_view>

namespace shardc {

/// Expects that the file `path` of the repository has the text. A failure prints the difference and `accept`, the
/// command that writes the file. If goldens are being updated, the file is written instead.
auto ExpectRecorded(const std::string& path, const std::string& text, std::string_view accept) -> void;

}  // namespace shardc
