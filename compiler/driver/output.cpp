// Streams and colour. The rules of colour: --color, else NO_COLOR (https://no-color.org), CLICOLOR_FORCE, TERM=dumb,
// and whether stderr is a terminal.

#include "compiler/driver/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compiler/base/printable.h"
#include "compiler/base/text/long_words.h"

namespace shardc {

auto ColorChoiceFromText(std::string_view text) -> ColorChoice {
  CHECK(text == "auto" || text == "always" || text == "never", "color {}", text);
  return text == "auto" ? ColorChoice::Auto : text == "always" ? ColorChoice::Always : ColorChoice::Never;
}

static auto Environment(const char* name) -> std::string_view {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

auto UseColor(ColorChoice choice) -> bool {
  switch (choice) {
    case ColorChoice::Always: return true;
    case ColorChoice::Never: return false;
    case ColorChoice::Auto: break;
  }
  if (!Environment("NO_COLOR").empty() || Environment("TERM") == "dumb") {
    return false;
  }
  const std::string_view force = Environment("CLICOLOR_FORCE");
  return (!force.empty() && force != "0") || isatty(STDERR_FILENO) == 1;
}

auto WriteResult(std::string_view text) -> Status {
  // A file or another program gets the bytes as they are: a plan has to be read again.
  const std::string shown = isatty(STDOUT_FILENO) == 1 ? Printable(text) : "";
  if (!shown.empty()) {
    text = shown;
  }
  FAIL_IF(std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0,
          ExitCode::Environment, "cannot write to stdout: {}", std::strerror(errno));
  return Success{};
}

auto ReportError(const Error& error) -> ExitCode {
  if (!error.message.empty()) {
    fmt::print(stderr, "error: {}\n", Printable(CutLongWords(error.message)));
  }
  return error.code;
}

auto ExitCodeOf(const Status& status) -> ExitCode { return status ? ExitCode::Ok : ReportError(status.error()); }

}  // namespace shardc
