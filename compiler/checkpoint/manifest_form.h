// What the text of a manifest begins with; for its writer (manifest.cpp) and its reader (manifest_from_text.cpp).
#pragma once

#include <string_view>

namespace shardc {

constexpr const char* ManifestFormat = "shardc checkpoint";
/// The first line is these two with the digest between them.
constexpr std::string_view FirstLineBegin = "{\"digest\":\"";
constexpr std::string_view FirstLineEnd = "\",\n";

/// Returns the member of a file that has its digest. Another name for another meaning.
constexpr auto FileDigestName(bool is_of_blocks) -> const char* { return is_of_blocks ? "digest" : "xxh3_128"; }

}  // namespace shardc
