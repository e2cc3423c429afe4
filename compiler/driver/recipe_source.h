// From the command line to a checked recipe, and to a plan: what check, plan, run and eval have in common. Each of them
// takes a plan file too, and tells the two apart here.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/check/check_recipe.h"
#include "compiler/driver/command.h"
#include "compiler/passes/pipeline.h"

namespace shardc {

/// Values of the options that every command on recipes has.
struct RecipeOptions {
  std::string path;
  /// The recipe that the one at `path` was resolved from, whose folder its paths are relative to; empty if it is that.
  std::string resolved_from;
  std::vector<std::string> sets;
  std::vector<std::string> unsets;
  bool is_strict = false;
  std::string color = "auto";
};

auto DeclareRecipeOptions(CommandOptions& options, RecipeOptions& values, const std::string& name = "RECIPE|PLAN",
                          const std::string& doc = "a recipe (TOML) or a plan file") -> void;
/// Declares --set and --unset.
auto DeclareOverrides(CommandOptions& options, RecipeOptions& values) -> void;

/// A recipe with the texts and diagnostics that belong to it. Stays where it is made: diagnostics point to sources.
class RecipeSource {
 public:
  /// `text` is that of the recipe, where it has been read.
  explicit RecipeSource(const RecipeOptions& options, std::optional<std::string> text = {},
                        LeftOut left_out = LeftOut::Refuse);
  RecipeSource(const RecipeSource&) = delete;
  auto operator=(const RecipeSource&) -> RecipeSource& = delete;

  /// How the files that hold the data are looked at: those that are here are judged unless this says otherwise.
  auto set_file_checks(FileChecks checks) -> void { read_.files = checks; }
  /// Sets the number of hosts of the launch; used if the recipe does not set mesh.hosts.
  auto set_num_hosts(int64_t num_hosts) -> void { read_.num_hosts = num_hosts; }
  /// Sets the number of hosts that a launcher says, if there is one.
  auto TakeHostsOfLaunch() -> void;
  /// Looks at every id of the files too, once nothing else is wrong with the recipe.
  auto set_scan(ScanOptions scan) -> void { scan_ = std::move(scan); }
  /// Reads and checks. Errors: diagnostics, to be printed by PrintDiagnostics; the Error has no message then.
  auto Load() -> ErrorOr<Recipe>;
  /// Load, then Compile.
  auto LoadAndCompile(const PipelineOptions& options) -> ErrorOr<Plan>;
  /// Checks and compiles a recipe that was made from that of Load. Errors: as those of LoadAndCompile, and printed.
  auto CompileChanged(const Recipe& recipe, const PipelineOptions& options) -> ErrorOr<Plan>;
  /// Of a plan file instead: judges it as `shardc run` does. Errors: with their message, as `run` prints it; the
  /// diagnostics hold each fault besides, for RenderJson.
  auto ReadPlan(std::string_view text) -> ErrorOr<Plan>;
  /// To stderr; after them, what was assumed.
  auto PrintDiagnostics() const -> void;
  /// Returns the result after PrintDiagnostics: `source.Printed(source.Load())`.
  template <class T>
  auto Printed(ErrorOr<T> result) const -> ErrorOr<T> {
    PrintDiagnostics();
    return result;
  }
  /// The first error that PrintDiagnostics prints, with its notes and without colour; empty if there is none.
  auto FirstError() const -> std::string;
  auto diagnostics() const -> const Diagnostics& { return diagnostics_; }
  auto has_assumed() const -> bool { return !assumed_.empty(); }

 private:
  /// Adds to errors on weights of 4 or 8 bits what bf16 takes in their place.
  auto AddBf16Base() -> void;

  RecipeOptions options_;
  std::optional<std::string> text_;
  ReadOptions read_;
  /// A line for each key that was assumed.
  std::vector<std::string> assumed_;
  SourceSet sources_;
  Diagnostics diagnostics_;
  std::optional<ScanOptions> scan_;
};

/// What the command line names as RECIPE|PLAN.
struct NamedText {
  /// Nothing where it cannot be read: RecipeSource tries again, and says why.
  std::optional<std::string> text;
  bool is_plan = false;
};

/// Reads the file once, as what is piped in cannot be read again.
auto ReadRecipeOrPlan(const std::string& path) -> NamedText;

/// Takes the recipe of the newest launch of a run that began, or else of the newest one, if the recipe's path names the
/// directory of a run, and the directory as `checkpoint` if that is empty and the directory has checkpoints. Errors: no
/// launch of the run had a recipe.
auto TakeRecipeOfRun(RecipeOptions& options, std::string& checkpoint) -> Status;

/// Returns what a run of the recipe reads besides the recipe: its files of tokens and targets, and its seed.
auto InputsOf(const Recipe& recipe) -> std::vector<std::string>;

/// One option of a command, and whether it was given.
struct GivenOption {
  std::string_view name;
  bool is_given = false;
};

/// `--set` or `--unset`, as it was given.
auto SetOption(const RecipeOptions& options) -> GivenOption;

/// Errors: Usage, where one that acts on a recipe was given beside a plan.
auto RefuseRecipeOptions(const std::string& path, const std::vector<GivenOption>& options) -> Status;

}  // namespace shardc
