// From the command line to a checked recipe, and to a plan: what check, plan, run and eval have in common.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/command.h"
#include "compiler/passes/pipeline.h"

namespace shardc {

/// Values of the options that every command on recipes has.
struct RecipeOptions {
  std::string path;
  std::vector<std::string> sets;
  bool is_strict = false;
  std::string color = "auto";
};

auto DeclareRecipeOptions(CommandOptions& options, RecipeOptions& values, const std::string& positional = "RECIPE")
    -> void;

/// A recipe with the texts and diagnostics that belong to it. Stays where it is made: diagnostics point to sources.
class RecipeSource {
 public:
  /// `text` is that of the recipe, where it has been read.
  explicit RecipeSource(const RecipeOptions& options, std::optional<std::string> text = {});
  RecipeSource(const RecipeSource&) = delete;
  auto operator=(const RecipeSource&) -> RecipeSource& = delete;

  /// Reads and checks. Errors: diagnostics, to be printed by PrintDiagnostics; the Error has no message then.
  auto Load() -> ErrorOr<Recipe>;
  /// Load, then Compile.
  auto LoadAndCompile(const PipelineOptions& options) -> ErrorOr<Plan>;
  /// To stderr.
  auto PrintDiagnostics() const -> void;
  auto diagnostics() const -> const Diagnostics& { return diagnostics_; }

 private:
  RecipeOptions options_;
  std::optional<std::string> text_;
  SourceSet sources_;
  Diagnostics diagnostics_;
};

/// True if the text begins as a plan does.
auto IsPlanText(std::string_view text) -> bool;

}  // namespace shardc
