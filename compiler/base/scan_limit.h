// The value of data.scan: up to how many bytes of token files a launch looks at before it trains.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardc {

/// The bytes of "4 GiB" (or KiB, MiB, TiB; the space may be left out), or of 0. Nothing if the text is neither.
auto ParseScanLimit(std::string_view text) -> std::optional<int64_t>;
/// All forms, for messages.
constexpr std::string_view ScanLimitForms = "0 (never), or a size such as \"512 MiB\" or \"4 GiB\", 1024 TiB at most";

}  // namespace shardc
