// What an exception of c10d or Gloo says of the other side, in words of ours. Theirs name lines of their sources, and
// go on with a backtrace.
#pragma once

#include <exception>
#include <string>
#include <string_view>

namespace shardc {

/// The text without the backtrace.
auto TextOf(const std::exception& exception) -> std::string;

/// The clause of a wait that took too long.
inline constexpr std::string_view LateClause = "did not answer in time";

/// A clause about the other side: "closed the connection", "reset the connection", "did not answer in time"; for a text
/// that is none of these "failed: " and its first line.
auto ClauseOf(const std::string& text) -> std::string;

/// From now on LibTorch logs nothing on the standard error stream, unless the environment has TORCH_CPP_LOG_LEVEL. What
/// it would log comes as an error.
auto SilenceTorchLog() -> void;

}  // namespace shardc
