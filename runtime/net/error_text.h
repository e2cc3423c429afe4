// Errors as members of a job tell them to each other: exit code and text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// "6 rank 3 is gone".
auto PackError(const Error& error) -> std::string;
/// What PackError made. Of any other text ExitCode::Environment.
auto UnpackError(std::string_view text) -> Error;

/// 0: success. An error has a code above 0, whatever its own is.
auto CodeOf(const Status& status) -> int64_t;
/// Of success empty; of an error its message, at most so many bytes of it.
auto TextOf(const Status& status, size_t most) -> std::string;

}  // namespace shardc
