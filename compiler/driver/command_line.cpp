// The table of subcommands, and the only use of CLI11: it parses into the places that the subcommands name. Its own
// exit codes are mapped to ours.

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "compiler/base/exit_code_text.h"
#include "compiler/base/printable.h"
#include "compiler/driver/command.h"
#include "compiler/driver/output.h"
#include "compiler/driver/version.h"

namespace shardc {

static constexpr Subcommand Subcommands[] = {
    {"check", "report the errors in a recipe or a plan",
     "  shardc check --set mesh.dp=4 recipe.toml\n  shardc check recipe.plan", DeclareCheck},
    {"plan", "make the plan of a recipe, or explain what a recipe or a plan will cost",
     "  shardc plan recipe.toml -o recipe.plan\n  shardc plan --explain recipe.toml", DeclarePlan},
    {"run", "train from a recipe or a plan; a run that was stopped continues",
     "  shardc run recipe.toml\n  shardc run recipe.plan --run-dir /tmp/run", DeclareRun},
    {"eval", "evaluate a checkpoint on the held-out tokens",
     "  shardc eval recipe.toml --checkpoint runs/recipe/checkpoints/step-00000400\n"
     "  shardc eval recipe.toml --checkpoint DIR --format json",
     DeclareEval},
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
    {"docs", "print a generated page of the documentation",
     "  shardc docs --errors\n  shardc docs --recipe\n  shardc docs --machines\n  shardc docs --man", DeclareDocs,
     true},
};

auto AllSubcommands() -> std::span<const Subcommand> { return Subcommands; }

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
  app_.add_option(flags, value, doc)->required(is_required)->type_name(metavar);
}

auto CommandOptions::Repeated(const std::string& flags, std::vector<std::string>& values, const std::string& metavar,
                              const std::string& doc) -> void {
  app_.add_option(flags, values, doc)->type_name(metavar)->allow_extra_args(false);
}

auto CommandOptions::Choice(const std::string& flags, std::string& value, const std::vector<std::string>& choices,
                            const std::string& doc) -> void {
  const std::string names = fmt::format("{}", fmt::join(choices, "|"));
  const auto check = [choices, names](const std::string& word) {
    return std::find(choices.begin(), choices.end(), word) != choices.end()
               ? std::string()
               : fmt::format("`{}` is none of {}", word, names);
  };
  app_.add_option(flags, value, doc)->type_name(names)->check(check);
}

auto CommandOptions::Flag(const std::string& flags, bool& value, const std::string& doc) -> void {
  app_.add_flag(flags, value, doc);
}

/// The help of the named subcommand, which begins with two examples; without a subcommand, the help of the program.
static auto HelpText(CLI::App& app) -> std::string {
  const auto used = app.get_subcommands();
  if (used.empty()) {
    return app.help();
  }
  for (const Subcommand& subcommand : Subcommands) {
    if (subcommand.name == used.front()->get_name()) {
      used.front()->description(fmt::format("{}\n\n{}", subcommand.examples, subcommand.doc));
    }
  }
  return used.front()->help("shardc");
}

static auto ReportUsage(CLI::App& app, const CLI::ParseError& error) -> ExitCode {
  const auto used = app.get_subcommands();
  const std::string command = used.empty() ? "shardc" : "shardc " + used.front()->get_name();
  fmt::print(stderr, "error: {}\nsee `{} --help`\n", Printable(error.what()), command);
  return ExitCode::Usage;
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
  for (const Subcommand& subcommand : Subcommands) {
    CLI::App* command = app.add_subcommand(std::string(subcommand.name), std::string(subcommand.doc));
    CommandOptions options(*command);
    actions.emplace_back(command, subcommand.declare(options));
    command->footer(ExitCodeTable());
    if (subcommand.is_hidden) {
      command->group("");
    }
  }
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return ExitCodeOf(WriteResult(HelpText(app)));
  } catch (const CLI::ParseError& error) {
    return ReportUsage(app, error);
  }
  if (version) {
    return ExitCodeOf(WriteResult(VersionText(version_format == "json")));
  }
  for (const auto& [command, action] : actions) {
    if (command->parsed()) {
      return action();
    }
  }
  return ReportError(Fail(ExitCode::Usage, "no command\nsee `shardc --help`"));
}

}  // namespace shardc
