// A number of seconds to wait, as a command line states it.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"
#include "compiler/base/units.h"

namespace shardc {

/// How long a rank waits for others if --timeout is not given.
inline constexpr Seconds DefaultTimeout{600};
/// In seconds: 31 years. No clock overflows when so much is added to it.
inline constexpr double LongestTimeout = 1e9;

/// Nothing if the text is no number of seconds above 0 and at most LongestTimeout.
inline auto ParseTimeout(std::string_view text) -> std::optional<Seconds> {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  // A comparison with a NaN is false.
  const bool is_right = error == std::errc() && end == text.data() + text.size() && seconds > 0;
  return is_right && seconds <= LongestTimeout ? std::optional(Seconds{seconds}) : std::nullopt;
}

/// What is wrong with the text.
inline auto WrongTimeout(std::string_view text) -> std::string {
  return fmt::format("`{}` stands where seconds belong, more than 0 and at most {:.0f}", text, LongestTimeout);
}

/// Of the option --timeout. Errors: ExitCode::Usage with what is wrong.
inline auto CheckTimeout(std::string_view text) -> Status {
  return ParseTimeout(text) ? Status(Success{}) : Fail(ExitCode::Usage, "--timeout: {}", WrongTimeout(text));
}

}  // namespace shardc
