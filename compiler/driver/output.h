// What goes to the two streams: results to stdout, everything else to stderr.
#pragma once

#include <string_view>

#include "compiler/base/error_or.h"

namespace shardc {

enum class ColorChoice { Auto, Always, Never };

/// Requires: "auto", "always" or "never".
auto ColorChoiceFromText(std::string_view text) -> ColorChoice;

/// True if stderr gets colour: as chosen, else as NO_COLOR, CLICOLOR_FORCE, TERM and the terminal say.
auto UseColor(ColorChoice choice) -> bool;

/// Writes a result to stdout; to a terminal, as Printable text. Errors: a full disk, a closed pipe
/// (ExitCode::Environment).
auto WriteResult(std::string_view text) -> Status;

/// "error: message" on stderr, as Printable text, unless the message is empty (diagnostics have been printed); the
/// error's code.
auto ReportError(const Error& error) -> ExitCode;

/// Ok, or the code of a reported error.
auto ExitCodeOf(const Status& status) -> ExitCode;

}  // namespace shardc
