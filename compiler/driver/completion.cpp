// shardc completion bash|zsh|fish: scripts that complete command lines, with all words of the tables in them. A shell
// that has read the script starts no program to complete a word.

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "compiler/base/mapped.h"
#include "compiler/driver/command.h"
#include "compiler/driver/command_table.h"
#include "compiler/driver/output.h"

namespace shardc {

static auto IsDirectory(const OptionRow& option) -> bool {
  return option.metavar == "DIR" || option.metavar == "RUN_OR_DIR";
}
static auto IsSetOption(const OptionRow& option) -> bool { return option.long_name == "--set"; }

/// The words after `--set`, up to the value.
static auto SetWords() -> std::vector<std::string> {
  return Mapped<std::string>(SetKeys(), [](const SetKey& key) { return key.path + "="; });
}

/// `case` items of both shells: a line for each key with words.
static auto SetCases(std::string_view form) -> std::string {
  std::string text;
  for (const SetKey& key : SetKeys()) {
    if (!key.words.empty()) {
      text += fmt::format(fmt::runtime(form), key.path, fmt::join(key.words, " "));
    }
  }
  return text;
}

static auto CommandNames() -> std::vector<std::string_view> {
  return Mapped<std::string_view>(CommandTable(), &CommandRow::name);
}

static auto FlagsOf(const CommandRow& command) -> std::vector<std::string> {
  std::vector<std::string> flags;
  for (const OptionRow& option : command.options) {
    if (!option.is_positional()) {
      flags.push_back(option.long_name);
      if (!option.short_name.empty()) {
        flags.push_back(option.short_name);
      }
    }
  }
  return flags;
}

/// What may follow an option, or stand for a positional argument, as an assignment to `kind` and `reply`.
static auto BashValue(const OptionRow& option) -> std::string {
  if (!option.words.empty()) {
    return fmt::format("kind=words reply='{}'", fmt::join(option.words, " "));
  }
  return IsSetOption(option) ? "kind=set" : IsDirectory(option) ? "kind=directories" : "kind=files";
}

/// Returns true for the positional argument that a command has before others.
static auto IsBeforeOthers(const CommandRow& command, const OptionRow& option) -> bool {
  const auto last = std::find_if(command.options.rbegin(), command.options.rend(),
                                 [](const OptionRow& row) { return row.is_positional(); });
  return option.is_positional() && &option != &*last;
}

static auto BashOptionCases() -> std::string {
  std::string text;
  for (const CommandRow& command : CommandTable()) {
    for (const OptionRow& option : command.options) {
      if (IsBeforeOthers(command, option) && !option.words.empty()) {
        text += fmt::format("    '{0} {0}') [[ $cur == -* ]] || {1} ;;\n", command.name, BashValue(option));
      }
      if (option.is_positional() || option.is_flag()) {
        continue;
      }
      text += fmt::format("    '{} {}'", command.name, option.long_name);
      text += option.short_name.empty() ? "" : fmt::format(" | '{} {}'", command.name, option.short_name);
      text += fmt::format(") {} ;;\n", BashValue(option));
    }
  }
  return text;
}

static auto BashCommandCases() -> std::string {
  std::string text;
  for (const CommandRow& command : CommandTable()) {
    std::string positional = "kind=none";
    for (const OptionRow& option : command.options) {
      positional = option.is_positional() ? BashValue(option) : positional;
    }
    text += fmt::format("    {}) flags='{}' {} ;;\n", command.name, fmt::join(FlagsOf(command), " "), positional);
  }
  return text;
}

// `=` ends a word in COMP_WORDS, unless COMP_WORDBREAKS says otherwise; the loop puts such words together again.
static constexpr std::string_view BashForm = R"(# Completion of shardc for bash, made by `shardc completion bash`.
_shardc() {{
  local -a words=()
  local word glue= command= cur prev= kind= reply= flags= prefix= i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    word=${{COMP_WORDS[i]}}
    if [[ ( $word == = || -n $glue ) && ${{#words[@]}} -gt 0 ]]; then words[-1]+=$word; else words+=("$word"); fi
    glue=
    [[ $word == = ]] && glue=1
  done
  cur=${{words[-1]}}
  ((${{#words[@]}} > 1)) && prev=${{words[-2]}}
  for ((i = 1; i < ${{#words[@]}} - 1; i++)); do
    if [[ ${{words[i]}} != -* ]]; then command=${{words[i]}}; break; fi
  done
  if [[ $cur == --*=* ]]; then
    prev=${{cur%%=*}} prefix=$prev= cur=${{cur#*=}}
  fi
  case "$command $prev" in
{0}  esac
  if [[ -z $kind && $cur != -* ]]; then
    case $command in
    '') kind=words reply='{1}' ;;
{2}    esac
  elif [[ -z $kind ]]; then
    case $command in
    '') flags='--help --version --format' ;;
{2}    esac
    kind=words reply=$flags
  fi
  if [[ $kind == set && $cur == *=* ]]; then
    kind=words
    case ${{cur%%=*}} in
{3}    *) kind=none ;;
    esac
    prefix=$prefix${{cur%%=*}}= cur=${{cur#*=}}
  elif [[ $kind == set ]]; then
    kind=words reply='{4}'
    compopt -o nospace 2> /dev/null
  fi
  case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$reply" -- "$cur") ;;
    files) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
    directories) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
    *) COMPREPLY=() ;;
  esac
  [[ $COMP_WORDBREAKS == *=* || ${{#COMPREPLY[@]}} == 0 ]] || COMPREPLY=("${{COMPREPLY[@]/#/$prefix}}")
}}
complete -F _shardc shardc
)";

static auto BashScript() -> std::string {
  return fmt::format(fmt::runtime(BashForm), BashOptionCases(), fmt::join(CommandNames(), " "), BashCommandCases(),
                     SetCases("    {0}) reply='{1}' ;;\n"), fmt::join(SetWords(), " "));
}

/// A text in single quotes, in which the characters of `special` have a backslash.
static auto Quoted(std::string_view text, std::string_view special) -> std::string {
  std::string result = "'";
  for (const char c : text) {
    result += c == '\''                                   ? "'\\''"
              : special.find(c) == std::string_view::npos ? std::string(1, c)
                                                          : fmt::format("\\{}", c);
  }
  return result + "'";
}

static auto ZshValue(const OptionRow& option) -> std::string {
  const std::string action = !option.words.empty() ? fmt::format("({})", fmt::join(option.words, " "))
                             : IsSetOption(option) ? "_shardc_set"
                             : IsDirectory(option) ? "_files -/"
                                                   : "_files";
  const std::string_view noun = option.metavar == "RECIPE|PLAN"       ? "recipe or plan"
                                : option.metavar == "RECIPE|PLAN|RUN" ? "recipe, plan or run directory"
                                : option.metavar == "RECIPE|RUN"      ? "recipe or run directory"
                                                                      : option.metavar;
  return fmt::format(":{}:{}", noun, action);
}

static auto ZshArguments(const CommandRow& command) -> std::string {
  constexpr std::string_view Special = "[]:\\";
  std::string text;
  for (const OptionRow& option : command.options) {
    if (option.is_positional()) {
      text += fmt::format(" \\\n      '{}{}'", IsBeforeOthers(command, option) ? "" : "*", ZshValue(option));
      continue;
    }
    const std::string doc = Quoted(option.doc, Special);
    const std::string value = option.is_flag() ? "" : Quoted(ZshValue(option), "");
    const std::string repeat = option.is_repeated ? "'*'" : "";
    for (const std::string& name : {option.short_name, option.long_name}) {
      text += name.empty() ? "" : fmt::format(" \\\n      {}{}'['{}']'{}", repeat, name, doc, value);
    }
  }
  return text;
}

static auto ZshScript() -> std::string {
  std::string commands;
  std::string cases;
  for (const CommandRow& command : CommandTable()) {
    commands += fmt::format("    {}\n", Quoted(fmt::format("{}:{}", command.name, command.doc), ""));
    cases += fmt::format("    {}) _arguments{} ;;\n", command.name, ZshArguments(command));
  }
  return fmt::format(
      "#compdef shardc\n# Completion of shardc for zsh, made by `shardc completion zsh`.\n"
      "_shardc_set() {{\n  if compset -P '*='; then\n    case ${{IPREFIX##*[[:space:]]}} in\n{}    esac\n  else\n"
      "    compadd -S '' -- {}\n  fi\n}}\n\n"
      "_shardc() {{\n  local -a commands\n  commands=(\n{}  )\n"
      "  if ((CURRENT == 2)); then\n    _describe command commands\n    return\n  fi\n"
      "  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n{}  esac\n}}\n"
      "if [[ $funcstack[1] == _shardc ]]; then _shardc \"$@\"; else compdef _shardc shardc; fi\n",
      SetCases("      {0}=) compadd -- {1} ;;\n"), fmt::join(SetWords(), " "), commands, cases);
}

static auto FishOption(const CommandRow& command, const OptionRow& option) -> std::string {
  std::string text = fmt::format("complete -c shardc -n '__fish_seen_subcommand_from {}'", command.name);
  if (option.is_positional()) {
    return option.words.empty() ? text + " -F\n" : text + fmt::format(" -f -a '{}'\n", fmt::join(option.words, " "));
  }
  text += fmt::format(" -l {}", option.long_name.substr(2));
  text += option.short_name.empty() ? "" : fmt::format(" -s {}", option.short_name.substr(1));
  if (!option.words.empty()) {
    text += fmt::format(" -x -a '{}'", fmt::join(option.words, " "));
  } else if (IsSetOption(option)) {
    text += " -x -a '(__shardc_set)'";
  } else if (IsDirectory(option)) {
    text += " -x -a '(__fish_complete_directories)'";
  } else {
    text += option.is_flag() ? "" : " -r -F";
  }
  return text + fmt::format(" -d {}\n", Quoted(option.doc, "\\"));
}

static auto FishScript() -> std::string {
  std::string set = fmt::format("function __shardc_set\n  printf '%s\\n' {}\n", fmt::join(SetWords(), " "));
  for (const SetKey& key : SetKeys()) {
    for (const std::string& word : key.words) {
      set += fmt::format("  echo {}={}\n", key.path, word);
    }
  }
  std::string text =
      "# Completion of shardc for fish, made by `shardc completion fish`.\n" + set + "end\ncomplete -c shardc -f\n";
  for (const CommandRow& command : CommandTable()) {
    text += fmt::format("complete -c shardc -n __fish_use_subcommand -a {} -d {}\n", command.name,
                        Quoted(command.doc, "\\"));
    for (const OptionRow& option : command.options) {
      text += FishOption(command, option);
    }
  }
  return text;
}

auto CompletionScript(Shell shell) -> std::string {
  switch (shell) {
    case Shell::Bash: return BashScript();
    case Shell::Zsh: return ZshScript();
    case Shell::Fish: return FishScript();
  }
  CHECK(false, "shell {}", static_cast<int>(shell));
}

auto DeclareCompletion(CommandOptions& options) -> Action {
  const auto shell = std::make_shared<std::string>();
  options.Positional("SHELL", *shell, "bash, zsh or fish");
  return [shell] {
    if (*shell != "bash" && *shell != "zsh" && *shell != "fish") {
      return ReportError(
          Fail(ExitCode::Usage, "there is no completion for `{}`; there is for bash, zsh and fish", *shell));
    }
    return ExitCodeOf(WriteResult(CompletionScript(*shell == "bash"  ? Shell::Bash
                                                   : *shell == "zsh" ? Shell::Zsh
                                                                     : Shell::Fish)));
  };
}

}  // namespace shardc
