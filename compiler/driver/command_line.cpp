// The table of subcommands, and the only use of CLI11: it parses into the places that the subcommands name. Its own
// exit codes are mapped to ours.

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/mapped.h"
#include "compiler/base/printable.h"
#include "compiler/base/text/json_text.h"
#include "compiler/base/version.h"
#include "compiler/diag/diagnostics.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/plan/plan.h"
#include "compiler/recipe/key_rows.h"

namespace shardc {

/// Returns "shardc 0.1.0", or one JSON object with the compiler and the plan format besides.
static auto VersionText(bool as_json) -> std::string {
  if (!as_json) {
    return fmt::format("shardc {}\n", ProgramVersion());
  }
  JsonObject version;
  version.Text("name", "shardc").Text("version", ProgramVersion()).Integer("plan_format", Plan::Version);
  return version.Text("compiler", fmt::format("g++ {}", __VERSION__)).text() + "\n";
}

static constexpr Subcommand Rows[] = {
    {"check", "report the errors in a recipe or a plan",
     "  shardc check --set mesh.dp=4 recipe.toml\n  shardc check recipe.plan", DeclareCheck},
    {"plan", "make the plan of a recipe, or explain what a recipe or a plan will cost",
     "  shardc plan recipe.toml -o recipe.plan\n  shardc plan --explain recipe.toml", DeclarePlan},
    {"diff", "compare two recipes or plans: keys, memory, communication, FLOPs",
     "  shardc diff a.toml b.toml\n  shardc diff recipe.toml --set recompute.policy=full", DeclareDiff},
    {"run", "train from a recipe or a plan; a run that was stopped continues",
     "  shardc run recipe.toml\n  shardc run recipe.plan --run-dir /tmp/run", DeclareRun},
    {"init", "write the checkpoint of step 0, from which runs on any mesh begin",
     "  shardc init recipe.toml -o runs/first\n  shardc init recipe.toml -o runs/first --set mesh.dp=8", DeclareInit},
    {"eval", "evaluate a checkpoint on the held-out tokens",
     "  shardc eval recipe.toml --checkpoint runs/recipe/checkpoints/step-00000400\n"
     "  shardc eval recipe.toml --checkpoint DIR --format json",
     DeclareEval},
    {"logits", "write what a checkpoint makes of given ids",
     "  shardc logits recipe.toml --checkpoint runs/recipe --tokens ids.bin -o logits.safetensors\n"
     "  shardc logits recipe.toml --checkpoint DIR --tokens ids.bin -o logits.safetensors --set mesh.tp=2",
     DeclareLogits},
    {"sample", "print what a checkpoint says after a prompt",
     "  shardc sample recipe.toml --checkpoint runs/recipe --prompt \"A man \" --temperature 0.8\n"
     "  shardc sample recipe.toml --checkpoint DIR --prompt-ids 128000,791 --tokens-out 32",
     DeclareSample},
    {"export", "write a checkpoint as a model that transformers opens",
     "  shardc export runs/recipe -o model\n  shardc export DIR -o model --dtype bf16 --tokenizer published_model",
     DeclareExport},
    {"checkpoint", "list, show, verify, compare or remove checkpoints",
     "  shardc checkpoint list runs/recipe\n  shardc checkpoint diff runs/a runs/b", DeclareCheckpoint},
    {"data", "show a sample as the model gets it: tokens, documents, positions, targets",
     "  shardc data show recipe.toml --sample 0\n  shardc data show recipe.plan --sample 3 --split eval", DeclareData},
    {"doctor", "look at the hosts of a launch: what each has, and what their links carry",
     "  shardc doctor\n  srun shardc doctor recipe.toml", DeclareDoctor},
    {"tokenize", "make a token file",
     "  shardc tokenize --bytes book.txt -o book.bin\n  shardc tokenize --bytes *.txt -o all.bin", DeclareTokenize},
    {"new", "write a recipe to begin with", "  shardc new recipe.toml\n  shardc new recipe.toml --preset llama3-8b",
     DeclareNew},
    {"presets", "list the models that a recipe may name in model.preset",
     "  shardc presets\n  shardc presets --format json", DeclarePresets},
    {"help", "explain a diagnostic, a recipe key, an op, a pass or a function",
     "  shardc help heads-not-divisible\n  shardc help optimizer.lr", DeclareHelp},
    {"schema", "print the JSON schema of recipes, for editors, or that of plans",
     "  shardc schema > recipe.schema.json\n  shardc schema --plan > plan.schema.json", DeclareSchema},
    {"completion", "print the completion of command lines for a shell",
     "  source <(shardc completion bash)\n  shardc completion fish > ~/.config/fish/completions/shardc.fish",
     DeclareCompletion},
    {"docs", "print a generated page of the documentation, or the manual page",
     "  shardc docs --errors\n  shardc docs --recipe\n  shardc docs --machines\n  shardc docs --man", DeclareDocs},
};

auto Subcommands() -> std::span<const Subcommand> { return Rows; }

auto CommandOptions::Positional(const std::string& name, std::string& value, const std::string& doc, bool is_required)
    -> void {
  app_.add_option(name, value, doc)->required(is_required)->type_name("");
}

auto CommandOptions::Positionals(const std::string& name, std::vector<std::string>& values, const std::string& doc)
    -> void {
  app_.add_option(name, values, doc)->required()->type_name("");
}

auto CommandOptions::Text(const std::string& flags, std::string& value, const std::string& metavar,
                          const std::string& doc, bool is_required) -> void {
  // A variable of a script that is not set makes an empty argument.
  const auto is_empty = [](const std::string& text) { return text.empty() ? "the value is empty" : ""; };
  app_.add_option(flags, value, doc)->required(is_required)->type_name(metavar)->check(is_empty, "", "");
}

auto CommandOptions::Repeated(const std::string& flags, std::vector<std::string>& values, const std::string& metavar,
                              const std::string& doc) -> void {
  app_.add_option(flags, values, doc)->type_name(metavar)->allow_extra_args(false);
}

auto CommandOptions::Choice(const std::string& flags, std::string& value, const std::vector<std::string>& choices,
                            const std::string& doc) -> void {
  const std::string names = fmt::format("{}", fmt::join(choices, "|"));
  const auto check = [choices, names](const std::string& word) {
    if (std::find(choices.begin(), choices.end(), word) != choices.end()) {
      return std::string();
    }
    const std::string closest = ClosestWord(word, {choices.begin(), choices.end()});
    return fmt::format("`{}` is none of {}{}", word, names,
                       closest.empty() ? "" : fmt::format("; did you mean `{}`?", closest));
  };
  app_.add_option(flags, value, doc)->type_name(names)->check(check);
}

auto CommandOptions::Flag(const std::string& flags, bool& value, const std::string& doc) -> void {
  app_.add_flag(flags, value, doc);
}

auto CommandOptions::FlagOrText(const std::string& flags, std::string& value, const std::string& doc) -> void {
  app_.add_flag(flags, value, doc);
}

/// The help of the named subcommand, which begins with two examples; without a subcommand, the help of the program.
static auto HelpText(CLI::App& app) -> std::string {
  const auto used = app.get_subcommands();
  if (used.empty()) {
    return app.help();
  }
  for (const Subcommand& subcommand : Rows) {
    if (subcommand.name == used.front()->get_name()) {
      used.front()->description(fmt::format("{}\n\n{}", subcommand.examples, subcommand.doc));
    }
  }
  return used.front()->help("shardc");
}

namespace {

/// Commands by their names elsewhere, and what does that here.
struct CommandElsewhere {
  std::string_view name;
  std::string_view remedy;
};

}  // namespace

static constexpr CommandElsewhere CommandsElsewhere[] = {
    {"train", "shardc run RECIPE"},
    {"resume", "shardc run RECIPE"},
    {"fit", "shardc plan --fit 80GiB RECIPE"},
    {"trace", "shardc run RECIPE --trace FILE"},
    {"profile", "shardc run RECIPE --trace FILE"},
    {"compile", "shardc plan RECIPE -o FILE"},
    {"build", "shardc plan RECIPE -o FILE"},
    {"explain", "shardc plan --explain RECIPE"},
    {"preview", "shardc plan --explain RECIPE"},
    {"cost", "shardc plan --explain RECIPE"},
    {"lint", "shardc check RECIPE"},
    {"validate", "shardc check RECIPE"},
    {"evaluate", "shardc eval RECIPE --checkpoint DIR"},
    {"test", "shardc eval RECIPE --checkpoint DIR"},
    {"version", "shardc --version"},
};

/// "; did you mean `check`?", or what does it here.
static auto CommandHelp(std::string_view word, const std::vector<std::string_view>& commands) -> std::string {
  const auto* const row = std::ranges::find(CommandsElsewhere, word, &CommandElsewhere::name);
  if (row != std::end(CommandsElsewhere) && std::ranges::find(commands, word) == commands.end()) {
    return fmt::format("; write: {}", row->remedy);
  }
  if (const std::string closest = ClosestWord(word, commands); !closest.empty()) {
    return fmt::format("; did you mean `{}`?", closest);
  }
  const std::string elsewhere = ClosestWord(word, Mapped<std::string_view>(CommandsElsewhere, &CommandElsewhere::name));
  if (!elsewhere.empty()) {
    return fmt::format("; did you mean: {}",
                       std::ranges::find(CommandsElsewhere, elsewhere, &CommandElsewhere::name)->remedy);
  }
  const bool is_file = word.ends_with(".toml") || word.ends_with(".plan");
  return is_file ? fmt::format("; a file comes after a command: shardc check {}", word) : "";
}

static auto UnknownCommand(std::string_view word) -> std::string {
  const auto commands = Mapped<std::string_view>(Rows, &Subcommand::name);
  return fmt::format("unknown command `{}`{}\ncommands: {}", word, CommandHelp(word, commands),
                     fmt::join(commands, " "));
}

static auto UnknownOption(const CLI::App& command, std::string_view argument) -> std::string {
  const std::string_view word = argument.substr(0, argument.find('='));
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags.push_back("--" + name);
    }
    for (const std::string& name : option->get_snames()) {
      flags.push_back("-" + name);
    }
  }
  for (const RecipeKeyRow& row : RecipeKeyRows()) {
    if (row.list.empty() && (word == "--" + row.name || word == "--" + row.path())) {
      return fmt::format("unknown option `{}`; for the key of the recipe: --set {}=VALUE", word, row.path());
    }
  }
  const std::string closest = ClosestWord(word, {flags.begin(), flags.end()});
  return fmt::format("unknown option `{}`{}", word,
                     closest.empty() ? fmt::format("; options: {}", fmt::join(flags, " "))
                                     : fmt::format("; did you mean `{}`?", closest));
}

/// The first argument that nothing takes, in the order of the command line.
static auto FirstExtra(const CLI::App& app, int argc, const char* const* argv) -> std::string {
  const std::vector<std::string> extras = app.remaining(true);
  for (int i = 1; i < argc; ++i) {
    if (std::ranges::find(extras, std::string_view(argv[i])) != extras.end()) {
      return argv[i];
    }
  }
  return extras.empty() ? "" : extras.front();
}

/// What the library says of options in its own words.
static auto OptionText(const CLI::ParseError& error) -> std::string {
  const std::string text = error.what();
  const auto part = [&](std::string_view after, std::string_view until) {
    const size_t begin = text.find(after) == std::string::npos ? 0 : text.find(after) + after.size();
    return text.substr(begin, text.find(until, begin) - begin);
  };
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.ends_with("missing") ? fmt::format("{} needs {}", part("", ":"), part("required ", " missing"))
                                     : fmt::format("{} is given more than once", part("", ":"));
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    return fmt::format("{} takes no value", part(": ", " ="));
  }
  return text;
}

static auto UsageText(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv)
    -> std::string {
  const auto used = app.get_subcommands();
  // A misspelt option leaves a required one unset, which the library tells first.
  const bool is_extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                        dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  const std::string extra = is_extra ? FirstExtra(app, argc, argv) : "";
  if (extra.empty()) {
    return OptionText(error);
  }
  if (extra.starts_with('-') && extra.size() > 1) {
    return UnknownOption(used.empty() ? app : *used.front(), extra);
  }
  if (used.empty()) {
    return UnknownCommand(extra);
  }
  const std::string command = used.front()->get_name();
  for (int i = 3; i < argc; ++i) {
    if (extra == argv[i] && std::string_view(argv[i - 2]) == "--set") {
      return fmt::format("unexpected argument `{0}`; did you mean --set {1}={0}?", extra, argv[i - 1]);
    }
  }
  return extra == argv[1] && extra != command
             ? fmt::format("the command comes first; write: shardc {} {}", command, extra)
             : fmt::format("unexpected argument `{}`", extra);
}

static auto ReportUsage(const CLI::App& app, const CLI::ParseError& error, int argc, const char* const* argv)
    -> ExitCode {
  const auto used = app.get_subcommands();
  const std::string command = used.empty() ? "shardc" : "shardc " + used.front()->get_name();
  const Error usage = Fail(ExitCode::Usage, "{}\nsee `{} --help`", UsageText(app, error, argc, argv), command);
  return ReportError(
      command == "shardc run" || command == "shardc init" || command == "shardc eval" ? TellLaunchOf(usage) : usage);
}

auto RunCommandLine(int argc, const char* const* argv) -> ExitCode {
  CLI::App app;
  app.name("shardc");
  app.description(
      "  shardc plan --explain recipe.toml\n  shardc run recipe.toml\n\n"
      "Compiles recipes of training runs into plans, and runs the plans.");
  app.footer(ExitCodeTable());
  app.get_formatter()->column_width(40);
  app.set_help_flag("-h,--help", "print this help");
  bool version = false;
  std::string version_format = "text";
  app.add_flag("--version", version, "print the version");
  app.add_option("--format", version_format, "format of the version")
      ->check(CLI::IsMember({"text", "json"}))
      ->type_name("");

  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Subcommand& subcommand : Rows) {
    CLI::App* command = app.add_subcommand(std::string(subcommand.name), std::string(subcommand.doc));
    CommandOptions options(*command);
    actions.emplace_back(command, subcommand.declare(options));
    command->footer(ExitCodeTable());
  }
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ExitCodeOf(WriteResult(HelpText(app)));
  } catch (const CLI::ParseError& error) {
    return ReportUsage(app, error, argc, argv);
  }
  if (version) {
    return ExitCodeOf(WriteResult(VersionText(version_format == "json")));
  }
  for (const auto& [command, action] : actions) {
    if (command->parsed()) {
      return action();
    }
  }
  return ReportError(Fail(ExitCode::Usage, "no command\n{}", HelpText(app)));
}

}  // namespace shardc
