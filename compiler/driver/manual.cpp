// The manual page, in the macros of man(7): the commands with their options, the exit codes, and where the rest is.

#include <fmt/format.h>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/version.h"
#include "compiler/driver/command_table.h"

namespace shardc {

/// Text in which roff sees no request and no escape.
static auto Roff(std::string_view text) -> std::string {
  std::string result;
  for (const char c : text) {
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    if (c == '\n') {
      result += "\\&";
    }
  }
  return "\\&" + result;
}

static auto NameOf(const OptionRow& option) -> std::string {
  if (option.is_positional()) {
    return fmt::format("\\fI{}\\fR", Roff(option.metavar));
  }
  const std::string names = option.short_name.empty() ? option.long_name : option.short_name + ", " + option.long_name;
  return fmt::format("\\fB{}\\fR{}", Roff(names),
                     option.is_flag() ? "" : fmt::format(" \\fI{}\\fR", Roff(option.metavar)));
}

auto ManualPage() -> std::string {
  std::string text = fmt::format(
      ".\\\" Made by `shardc docs --man` from the declarations of the commands.\n"
      ".TH SHARDC 1 \"\" \"shardc {}\" \"User Commands\"\n"
      ".SH NAME\nshardc \\- compile recipes of training runs into plans, and run the plans\n"
      ".SH SYNOPSIS\n.B shardc\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
      ".SH DESCRIPTION\nA TOML recipe says what to train and how to spread it over ranks. shardc checks the recipe, "
      "shows\n"
      "what the run will cost, and makes the plan that the runtime executes.\n"
      ".SH COMMANDS\n",
      Roff(ProgramVersion()));
  for (const CommandRow& command : CommandTable()) {
    text +=
        fmt::format(".SS shardc {}\n{}\n.PP\n.nf\n{}\n.fi\n", command.name, Roff(command.doc), Roff(command.examples));
    for (const OptionRow& option : command.options) {
      text += fmt::format(".TP\n{}\n{}\n", NameOf(option), Roff(option.doc));
    }
  }
  return text + fmt::format(".SH EXIT STATUS\n.nf\n{}\n.fi\n", Roff(ExitCodeTable())) +
         ".SH SEE ALSO\n\\fBshardc help\\fR \\fINAME\\fR explains a diagnostic, a recipe key, an op, a pass or a "
         "function.\n";
}

}  // namespace shardc
