// An error as a value of the store: its exit code and its text.
#pragma once

#include <string>
#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

/// "6 rank 3 is gone".
auto PackError(const Error& error) -> std::string;
/// What PackError made. Of any other text ExitCode::Environment.
auto UnpackError(std::string_view text) -> Error;

}  // namespace shardc
