// What a subcommand is: a row of the table in command_line.cpp, one file each. A subcommand declares its options on a
// CommandOptions and returns what to do with them; the library that parses command lines stays in command_line.cpp.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/base/error_or.h"

namespace CLI {
class App;
}

namespace shardc {

/// Takes the places that parsed values go to; these must outlive the parsing.
class CommandOptions {
 public:
  explicit CommandOptions(CLI::App& app) : app_(app) {}

  auto Positional(const std::string& name, std::string& value, const std::string& doc, bool is_required = true) -> void;
  auto Positionals(const std::string& name, std::vector<std::string>& values, const std::string& doc) -> void;
  /// `flags` is "--run-dir" or "-o,--output"; `metavar` names the value in the help.
  auto Text(const std::string& flags, std::string& value, const std::string& metavar, const std::string& doc,
            bool is_required = false) -> void;
  /// May be given several times; each takes one value.
  auto Repeated(const std::string& flags, std::vector<std::string>& values, const std::string& metavar,
                const std::string& doc) -> void;
  auto Choice(const std::string& flags, std::string& value, const std::vector<std::string>& choices,
              const std::string& doc) -> void;
  auto Flag(const std::string& flags, bool& value, const std::string& doc) -> void;
  /// Takes a value after an equals sign, or none, which makes the value "true".
  auto FlagOrText(const std::string& flags, std::string& value, const std::string& doc) -> void;

 private:
  CLI::App& app_;
};

/// Does the work once the options have their values.
using Action = std::function<auto()->ExitCode>;

struct Subcommand {
  std::string_view name;
  std::string_view doc;
  /// Two command lines, shown first in the help.
  std::string_view examples;
  auto(*declare)(CommandOptions& options) -> Action;
};

/// The rows of the table, in its order.
auto Subcommands() -> std::span<const Subcommand>;

auto DeclareCheck(CommandOptions& options) -> Action;
auto DeclareCheckpoint(CommandOptions& options) -> Action;
auto DeclareCompletion(CommandOptions& options) -> Action;
auto DeclareData(CommandOptions& options) -> Action;
auto DeclareDiff(CommandOptions& options) -> Action;
auto DeclareDocs(CommandOptions& options) -> Action;
auto DeclareDoctor(CommandOptions& options) -> Action;
auto DeclareEval(CommandOptions& options) -> Action;
auto DeclareExport(CommandOptions& options) -> Action;
auto DeclareHelp(CommandOptions& options) -> Action;
auto DeclareInit(CommandOptions& options) -> Action;
auto DeclareLogits(CommandOptions& options) -> Action;
auto DeclareNew(CommandOptions& options) -> Action;
auto DeclarePlan(CommandOptions& options) -> Action;
auto DeclarePresets(CommandOptions& options) -> Action;
auto DeclareRun(CommandOptions& options) -> Action;
auto DeclareSample(CommandOptions& options) -> Action;
auto DeclareSchema(CommandOptions& options) -> Action;
auto DeclareTokenize(CommandOptions& options) -> Action;

/// Tells the processes that wait for this one of an error that keeps `shardc run` or `shardc eval` from starting.
/// Returns the error if nobody waits, or if they cannot be told.
auto TellLaunchOf(const Error& error) -> Error;

/// The program shardc: parses, runs the subcommand, maps every outcome to an exit code.
auto RunCommandLine(int argc, const char* const* argv) -> ExitCode;

}  // namespace shardc
