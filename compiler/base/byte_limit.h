// The value of a key that bounds a number of bytes: data.scan, run.attention_workspace.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

constexpr int64_t MostByteLimit = int64_t{1} << 50;

/// Returns the bytes of "4 GiB" (or KiB, MiB, TiB; the space may be left out), or of 0; nothing for another text.
auto ParseByteLimit(std::string_view text) -> std::optional<int64_t>;
/// All forms, for messages.
constexpr std::string_view ByteLimitForms = "0, or a size such as \"512 MiB\" or \"4 GiB\", 1024 TiB at most";

}  // namespace shardc
